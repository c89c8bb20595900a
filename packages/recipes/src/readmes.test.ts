// oxlint-disable-next-line no-restricted-imports -- a test reads the files that it checks
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import * as recipes from './index.ts'
import { pass } from './testdata/faults.ts'
import { bytes, World } from './testdata/world.ts'

const printed: Record<string, unknown[][]> = {
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
}

it.each(Object.keys(printed))(
  'the README of %s begins with the lost connection, and its example runs',
  async (folder) => {
    const readme = readFileSync(new URL(`${folder}/README.md`, import.meta.url), 'utf8')
    expect(readme).toMatch(/^# .+\n\n\*\*When the connection is lost\*\*/)
    const [, names = '', body = ''] =
      /```ts\nimport \{([^}]*)\} from '@zabra\/recipes'\n([\s\S]*?)```/.exec(readme) ?? []
    const world = await World.start()
    const [client, other] = [await world.client(), await world.client()]
    await world.outcome(client.create('/report'))
    const lines: unknown[][] = []
    const output = { log: (...words: unknown[]) => lines.push(words) }
    // oxlint-disable-next-line no-implied-eval -- the example is our own text
    const run = new Function(
      'recipes',
      'client',
      'other',
      'data',
      'console',
      `const {${names}} = recipes\nreturn (async () => {${body}})()`,
    )
    await pass(world, 10_000, run(recipes, client, other, bytes('x'), output) as Promise<void>)
    expect(lines).toEqual(printed[folder])
    await world.end()
  },
)
