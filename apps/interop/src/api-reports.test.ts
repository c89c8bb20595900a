import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { propertiesOf } from './api-properties.ts'
import { apiReport } from './api-report.ts'

const packages = resolve(import.meta.dirname, '../../../packages')

type Entry = { readonly types?: string; readonly node?: { readonly types: string } } | string

/** Returns the declaration file of each entry point of a package; the conditions of one entry point are two. */
function entriesOf(folder: string): ReadonlyMap<string, string> {
  const { name, exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly name: string
    readonly exports: Readonly<Record<string, Entry>>
  }
  return new Map(
    Object.entries(exports).flatMap(([path, entry]) => {
      if (typeof entry === 'string') return []
      const file = entry.node?.types ?? entry.types!
      return [[join(name, path), join(folder, file)]]
    }),
  )
}

// After a change that is meant: pnpm --filter zabra-interop gen:api
it.each(['client', 'protocol', 'recipes', 'runtime', 'server', 'testing'])(
  'the public API of %s is the one in its report, which a change must update',
  async (name) => {
    const folder = join(packages, name)
    await expect(apiReport(folder, entriesOf(folder))).toMatchFileSnapshot(join(folder, `${name}.api.d.ts`))
  },
)

/** Numbers of things, and figures that ZooKeeper and Curator name. Points in time are in milliseconds. */
const withoutUnit = new Set(
  (
    'at actual attempt attempts batchSize blockSize breakOnHealRate buffer client concurrency count deadLetterAfter ' +
    'deliveries depth durableVersion election errors eventCount expected factor featureLevel generation hash high id inFlight index ' +
    'isOptional limit low maxAttempts maxDepth maxItems maxNodes maxReads mean members namesVersion numChildren ' +
    'offlineQueue order permits perms pid port position priority probability quorum rate received reconnects repairs ' +
    'round seed sent sequence servers sessionGeneration size splitRate sslPort stallRate startCount stream tailRate ' +
    'target truncations value version waiting watchers wireCode znodes firstUnsyncedByte ' +
    // Points in time.
    'lastArrival lastContact leaseHorizon modifiedAt now registrationTimeUTC time ' +
    // Of ZooKeeper.
    'aversion ctime cversion dataLength mtime'
  ).split(' '),
)

describe.each(['client', 'recipes', 'testing'])('the public API of %s', (name) => {
  const properties = propertiesOf(readFileSync(join(packages, name, `${name}.api.d.ts`), 'utf8'))

  it('names the unit of each number that has one', () => {
    expect(properties.length).toBeGreaterThan(50)
    const numbers = properties.filter(({ type }) =>
      /^(?:number|bigint)(?: \| (?:undefined|bigint|number))*$/.test(type),
    )
    const unclear = numbers.filter(
      ({ name: property, type }) =>
        type.startsWith('number') && !/(?:Ms|Bytes)$/.test(property) && !withoutUnit.has(property),
    )
    expect(unclear).toEqual([])
  })

  it('takes undefined for each optional property, as exactOptionalPropertyTypes demands', () => {
    const strict = properties.filter(
      ({ isOptional, type }) => isOptional && !/(?:^|\| |\? )(?:undefined|unknown)$/.test(type),
    )
    expect(strict).toEqual([])
  })
})
