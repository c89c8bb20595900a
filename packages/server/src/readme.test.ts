// oxlint-disable no-restricted-imports -- the examples of the README serve on real ports and disks
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nodePlatform } from '@zabra/runtime/node'
import { freePorts } from '@zabra/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as index from './index.ts'
import * as files from './persistence/tools/index.ts'
import { defaults, loadSettings } from './settings/index.ts'

const { createServer } = index
const modules: Readonly<Record<string, object>> = {
  '@zabra/server': index,
  '@zabra/server/files': files,
  '@zabra/runtime/node': { nodePlatform },
}

let folder: string
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'zabra-embedded-'))))
afterAll(() => rmSync(folder, { recursive: true }))

/** Runs an example as JavaScript, below `folder`; returns the lines that it prints and those that it promises. */
async function run(readme: URL, heading: RegExp, ports: readonly number[] = []): Promise<string[][]> {
  const text = readFileSync(readme, 'utf8')
  const [, code = ''] = /```js\n([\s\S]*?)```/.exec(text.slice(heading.exec(text)!.index)) ?? []
  const left = [...ports]
  const body = code
    .replaceAll(/^import (\{.*\}) from '(.*)'$/gm, "const $1 = modules['$2']")
    .replaceAll('./data', `${folder}/data`)
    .replaceAll(/\b(2888|2889|2890|3888|3889|3890)\b/g, () => String(left.shift()))
  const printed: string[] = []
  const log = (...words: unknown[]): void => void printed.push(words.map(String).join(' '))
  // oxlint-disable-next-line no-implied-eval -- the example is our own text
  const example = new Function('modules', 'console', `return (async () => {${body}})()`)
  await example(modules, { log, error: log })
  return [printed, [...code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map(([, line = '']) => line)]
}

const readme = new URL('../README.md', import.meta.url)

describe('the examples of the README', () => {
  it('serve in this process, and read the files without a server', async () => {
    const [printed, promised] = await run(readme, /^```js/m)
    expect(printed).toEqual(promised)
    expect(promised).toHaveLength(1)
    // What is closed can be opened again: the folder is free and holds a state.
    const settings = { dataDir: join(folder, 'data'), clientPort: 0 }
    const again = await createServer(settings)
    await expect(createServer(settings)).rejects.toMatchObject({ name: 'FolderLockedError' })
    await again.close()
    expect(await again.failed).toBeUndefined()
    const [paths] = await run(readme, /^## Files without/m)
    expect(paths).toEqual(expect.arrayContaining(['/', '/zookeeper', '/zookeeper/quota']))
  })

  it('are the same in the README of the project', async () => {
    const [printed = []] = await run(
      new URL('../../../README.md', import.meta.url),
      /^Inside a Node process/m,
    )
    expect(printed.join()).toMatch(/^serving on port \d+$/)
  })

  it('serve as an ensemble', { timeout: 60_000 }, async () => {
    const [printed, promised] = await run(readme, /^## Ensembles/m, await freePorts(6))
    expect(printed).toEqual(promised)
    expect(promised).toHaveLength(3)
  })
})

describe('createServer on the platform of this process', () => {
  const dataDir = (name: string): string => join(folder, name)

  it('rejects with every setting that is wrong', async () => {
    const wrong = createServer({ dataDir: dataDir('wrong'), clientPort: 70_000, tickTimeMs: -1 })
    await expect(wrong).rejects.toThrow(/`clientPort`.*`tickTimeMs`/)
    expect(existsSync(dataDir('wrong'))).toBe(false)
  })

  it('opens no HTTP port unless asked, and WebSockets without a platform', async () => {
    const [adminPort = 0] = await freePorts(1)
    const settings = { dataDir: dataDir('ports'), clientPort: 0, webSocketPort: 0 }
    const ready = (): Promise<number> =>
      fetch(`http://127.0.0.1:${adminPort}/livez`).then(
        ({ status }) => status,
        () => 0,
      )
    const quiet = await createServer(settings)
    expect(quiet.listeners.map(({ key }) => key)).toEqual(['clientPort', 'webSocketPort'])
    await quiet.close()
    const asked = await createServer({ ...settings, adminPort })
    expect(await ready()).toBe(200)
    await asked.close()
  })

  it('takes the settings that loadSettings returns', () => {
    const text = `dataDir=/data\nclientPort=2181\ntickTime=500\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n`
    const { settings } = loadSettings({
      file: { name: 'zoo.cfg', text },
      files: { resolve: (path) => path, read: (path) => (path.endsWith('myid') ? '2' : undefined) },
    })
    expect(settings).toBeDefined()
    expect(defaults(settings)).toEqual(settings)
  })
})
