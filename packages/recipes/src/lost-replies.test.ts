import { ConnectionLossError, type ZooKeeperError } from '@zabra/client/core'
import { expect, it } from 'vitest'
// oxlint-disable-next-line no-restricted-imports -- a test reads the files that it checks
import { readFileSync } from 'node:fs'
import { Mutex } from './mutex/index.ts'
import { enumerateFaults, neighbourFaults, tree } from './testing/fault-fixture.ts'
import { lives } from './testing/lives.ts'
import { bytes } from './testing/world.ts'

// A client that reports a failure although the request was applied, or repeats an applied request, is wrong only when a reply is lost.
// Each run here loses the reply to one of its requests, or that to another write of the same client in flight with it, for each
// of them, while the session lives: the result must be the same as without a fault, with no ambiguous result and nothing left
// behind.

const source = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

/** Returns the names of what an entry point of the package exports to work with: no errors, codecs and texts, and nothing that another one makes. */
async function recipesOf(path: string): Promise<string[]> {
  const exported = (await import(new URL(path, import.meta.url).href)) as Record<string, unknown>
  const notPlayed = ['bigEndian', 'decimal', 'uriOf', 'uriSpec', 'ServiceProvider']
  return Object.entries(exported).flatMap(([name, value]) =>
    typeof value !== 'function' || value.prototype instanceof Error || notPlayed.includes(name) ? [] : [name],
  )
}

it('every recipe that the package exports is played', async () => {
  const { exports } = JSON.parse(source('../package.json')) as { exports: Record<string, object | string> }
  const entries = Object.values(exports).flatMap((entry) =>
    typeof entry === 'object' && '@zabra/source' in entry ? [`.${String(entry['@zabra/source'])}`] : [],
  )
  const names = (await Promise.all(entries.map(recipesOf))).flat()
  const played = source('testing/lives.ts')
  expect(names.length).toBeGreaterThan(20)
  expect(names.filter((name) => !new RegExp(`\\b${name}\\(`).test(played))).toEqual([])
})

it.each(Object.entries(lives))(
  'a lost reply to any request, or to a write beside it, changes nothing: %s',
  async (_name, life) => {
    const played = await enumerateFaults(
      async (fixture, { client }) => {
        const observer = await fixture.world.client()
        await life(client, observer, fixture)
        await fixture.waitUntilQuiet()
        const paths = await tree(observer)
        const stats = await Promise.all(paths.map((path) => observer.exists(path)))
        expect(paths.filter((_path, n) => (stats[n]?.ephemeralOwner ?? 0n) !== 0n)).toEqual([])
      },
      ['cut after it was applied, before the reply', ...neighbourFaults],
    )
    expect(played).toBeGreaterThan(1)
  },
  300_000,
)

it('a guarded transaction whose reply is lost is reported as applied, not as rejected', async () => {
  const errors: unknown[] = []
  await enumerateFaults(
    async (fixture, { client }) => {
      const observer = await fixture.world.client()
      await observer.create('/data')
      const held = await new Mutex(client, '/lock', { errorPolicy: 'session' }).acquire()
      let error: unknown
      await held
        .guard([{ op: 'setData', path: '/data', data: bytes('1') }])
        .catch((e: unknown) => (error = e))
      const { stat } = await observer.getData('/data')
      if (error === undefined) expect(stat.version).toBe(1)
      else {
        expect(error).toBeInstanceOf(ConnectionLossError)
        expect((error as ZooKeeperError).maybeApplied).toBe(true)
        errors.push(error)
      }
      await held.release()
    },
    ['cut after it was applied, before the reply'],
  )
  expect(errors).toHaveLength(1)
})
