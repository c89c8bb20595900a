// oxlint-disable no-restricted-imports -- the example of the README serves on a real port and disk
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer as createListener, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nodePlatform } from '@zabra/runtime/node'
import { expect, it } from 'vitest'
import { createServer, defaults, parseConfiguration } from './index.ts'

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
    'nodePlatform',
    'dataDir',
    'console',
    `return (async () => {${body}})()`,
  )
  try {
    await run(createServer, defaults, nodePlatform, dataDir, output)
    expect(printed).toEqual([['serving', 4, 'znodes']])
    // What is closed can be opened again: the folder is free and holds a state.
    const again = await createServer(defaults({ dataDir, clientPort: 0 }), nodePlatform())
    const second = createServer(defaults({ dataDir, clientPort: 0 }), nodePlatform())
    await expect(second).rejects.toMatchObject({ name: 'FolderLockedError' })
    await again.close()
    expect(await again.failed).toBeUndefined()
  } finally {
    rmSync(dataDir, { recursive: true })
  }
})

/** Ports that were free a moment ago, all different. */
async function freePorts(count: number): Promise<number[]> {
  const listeners = await Promise.all(
    Array.from({ length: count }, () => {
      const listener = createListener()
      return new Promise<Server>((resolve) => listener.listen(0, '127.0.0.1', () => resolve(listener)))
    }),
  )
  const ports = listeners.map((listener) => (listener.address() as AddressInfo).port)
  await Promise.all(listeners.map((listener) => new Promise((resolve) => listener.close(resolve))))
  return ports
}

it('runs the example of the README for ensembles', { timeout: 60_000 }, async () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const [, body = ''] = /## Ensembles[\s\S]*?```ts\n(?:import .*\n)+([\s\S]*?)```/.exec(readme) ?? []
  const dataDir = mkdtempSync(join(tmpdir(), 'zabra-ensemble-'))
  const printed: string[] = []
  const ports = await freePorts(6)
  const given = {
    createServer,
    defaults,
    parseConfiguration,
    nodePlatform,
    dataDir,
    quorumPorts: [0, ...ports.slice(0, 3)],
    electionPorts: [0, ...ports.slice(3)],
    console: { log: (what: unknown) => void printed.push(String(what)) },
  }
  // oxlint-disable-next-line no-implied-eval -- the example is our own text
  const run = new Function(...Object.keys(given), `return (async () => {${body}})()`)
  try {
    await run(...Object.values(given))
    expect(printed).toEqual([...body.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map(([, text]) => text))
    expect(printed).toHaveLength(3)
  } finally {
    rmSync(dataDir, { recursive: true })
  }
})
