// oxlint-disable-next-line no-restricted-imports -- a test reads the files that it checks
import { readdirSync, readFileSync } from 'node:fs'
import type { Client } from '@zabra/client/core'
import { describe, expect, it } from 'vitest'
import { leftovers, advanceUntilSettled } from './testing/settle.ts'
import { ManualWorld } from './testing/world.ts'

interface Setting {
  readonly client: Client
  readonly other: Client
  readonly console: { log(...words: unknown[]): void }
}

/** The output of each README's example. */
const printed: Readonly<Record<string, readonly unknown[][]>> = {
  mutex: [
    ['stop:', 'released'],
    ['alone again', true],
  ],
  'read-write-lock': [['alone', true]],
  revocable: [['asked to stop for', 'maintenance'], ['released']],
  semaphore: [['one of two', true]],
  'multi-lock': [[2, 'locks']],
  'leader-election': [['leading'], ['stop now'], ['leading again'], ['leader:', undefined]],
  lease: [['other:', undefined]],
  'atomic-value': [[1n, 3n], [{ jobs: 2 }], [{ jobs: 3 }]],
  barrier: [['back to work']],
  configuration: [[4], [8]],
  'double-barrier': [
    ['together in round', 0],
    ['together in round', 0],
  ],
  group: [
    [['worker-7'], ['worker-7'], []],
    [[], [], ['worker-7']],
  ],
  'name-service': [[{ host: 'a.example' }], [['archive (old)', 'billing/eu']]],
  partitioner: ['0', '1', '2', '3'].map((item) => ['work on', item, true]),
  'persistent-node': [['busy']],
  queue: [
    ['ada', 1],
    ['grace', 1],
  ],
  'service-discovery': [['10.0.0.7', 8081, 'a']],
  'tree-cache': [[['a'], '1'], ['added'], ['added'], ['initialized'], ['updated'], ['2']],
  'two-phase-commit': [['committed']],
}

const read = (folder: string): string => readFileSync(new URL(`${folder}/README.md`, import.meta.url), 'utf8')

describe.each(Object.keys(printed))('the README of %s', (folder) => {
  it('begins with the behaviour on a lost connection', () => {
    expect(read(folder)).toMatch(/^# .+\n\n\*\*When the connection is lost\*\*/)
  })

  it('has an example that runs and leaves nothing behind', async () => {
    const { example } = (await import(`example:${folder}`)) as {
      example: (setting: Setting) => Promise<void>
    }
    const world = await ManualWorld.start()
    const [client, other, observer] = [await world.client(), await world.client(), await world.client()]
    const lines: unknown[][] = []
    const console = { log: (...words: unknown[]) => void lines.push(words) }
    await advanceUntilSettled(world, 20_000, example({ client, other, console }))
    expect(lines).toEqual(printed[folder])
    await world.advance(100)
    expect(await advanceUntilSettled(world, 10_000, leftovers(world, observer, [client, other]))).toEqual([])
    await world.end()
  })
})

it('every recipe has a README whose example is tested', () => {
  const shared = ['handles', 'lock-queue', 'support', 'testing']
  const folders = readdirSync(new URL('.', import.meta.url), { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() && !shared.includes(entry.name) ? [entry.name] : []))
    .toSorted()
  expect(folders).toEqual(Object.keys(printed).toSorted())
})
