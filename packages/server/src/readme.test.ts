// oxlint-disable no-restricted-imports -- the example of the README serves on a real port and disk
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nodePorts } from '@zabra/runtime/node'
import { expect, it } from 'vitest'
import { createServer, defaults } from './index.ts'

it('runs the example of the README', async () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const [, body = ''] = /```ts\n(?:import .*\n)+([\s\S]*?)```/.exec(readme) ?? []
  const dataDir = mkdtempSync(join(tmpdir(), 'zabra-embedded-'))
  const printed: unknown[][] = []
  const output = {
    log: (...words: unknown[]) => printed.push(words),
    error: (...words: unknown[]) => printed.push(words),
  }
  // oxlint-disable-next-line no-implied-eval -- the example is our own text
  const run = new Function(
    'createServer',
    'defaults',
    'nodePorts',
    'dataDir',
    'console',
    `return (async () => {${body}})()`,
  )
  try {
    await run(createServer, defaults, nodePorts, dataDir, output)
    expect(printed).toEqual([['serving', 4, 'znodes']])
    // What is closed can be opened again: the folder is free and holds a state.
    const again = await createServer(defaults({ dataDir, clientPort: 0 }), nodePorts())
    const second = createServer(defaults({ dataDir, clientPort: 0 }), nodePorts())
    await expect(second).rejects.toMatchObject({ name: 'FolderLockedError' })
    await again.close()
    expect(await again.failed).toBeUndefined()
  } finally {
    rmSync(dataDir, { recursive: true })
  }
})
