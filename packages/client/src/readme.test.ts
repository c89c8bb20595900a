// oxlint-disable no-restricted-imports -- the examples of the README run against a server on real ports and disks
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { inspect } from 'node:util'
import { createServer, type Server } from '@zabra/server'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { connect } from './node/index.ts'
import type { ExampleContext } from './testing/example-context.ts'
import { bytes } from './testing/manual-world.ts'

const folder = mkdtempSync(join(tmpdir(), 'zabra-readme-'))
const certificate = (name: string): string =>
  resolve(import.meta.dirname, '../../runtime/src/testdata/tls', name)

/** Maps package names to their entry points. */
const entries = {
  "'@zabra/client'": 'node/index.ts',
  "'@zabra/client/web'": 'web/index.ts',
  "'@zabra/client/otel'": 'otel.ts',
}

const textOf = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')
const readme = textOf('../README.md')
/** All examples of this README, and those of the project README that import the client. */
const examples = [readme, textOf('../../../README.md')].flatMap((text, which) =>
  [...text.matchAll(/```(ts|js)\n([\s\S]*?)```/g)]
    .filter(([, , code = '']) => which === 0 || code.includes("from '@zabra/client"))
    .map(({ 1: language = '', 2: code = '', index }) => ({
      // The line number and the nearest heading.
      name: `line ${text.slice(0, index).split('\n').length}, ${text
        .slice(0, index)
        .match(/(?<=^#+ ).*$/gm)!
        .at(-1)}`,
      code,
      language,
      file: join(folder, `example-${which}-${index}.${language}`),
    })),
)

/** Returns an example as a module that exports a function of its context, below its imports. */
function moduleOf(code: string, language: string): string {
  const lines = code.trimEnd().split('\n')
  const imports = lines.filter((line) => line.startsWith('import '))
  const body = lines.filter((line) => !line.startsWith('import '))
  const isTyped = language === 'ts'
  let head = [
    isTyped &&
      `import type { ExampleContext } from ${JSON.stringify(resolve(import.meta.dirname, 'testing/example-context.ts'))}`,
    ...imports,
  ]
    .filter(Boolean)
    .join('\n')
  for (const [name, entry] of Object.entries(entries)) {
    head = head.replaceAll(name, JSON.stringify(resolve(import.meta.dirname, entry)))
  }
  // A block scope, since some examples declare a client of their own.
  const parameters = `({ client, bytes, console }${isTyped ? ': ExampleContext' : ''})`
  const types = isTyped
    ? ''
    : `/** @param {import(${JSON.stringify(resolve(import.meta.dirname, 'testing/example-context.ts'))}).ExampleContext} context */\n`
  return `${head}\n${types}export default async ${parameters}${isTyped ? ': Promise<void>' : ''} => {\n{\n${body.join('\n')}\n}\n}\n`
}

/** Returns the lines that an example claims to print. */
const promised = (code: string): string[] =>
  [...code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map(([, text = '']) => text)

const portOf = (server: Server, key: string): number =>
  server.listeners.find((listener) => listener.key === key)!.address.port

/** Replaces addresses and files in an example with those of the test server. */
function onThisMachine(code: string, server: Server): string {
  return code
    .replaceAll('127.0.0.1:2181', `127.0.0.1:${portOf(server, 'clientPort')}`)
    .replaceAll(/tls:\/\/zk\d\.example\.com:2281/g, `tls://localhost:${portOf(server, 'secureClientPort')}`)
    .replaceAll('wss://zk.example.com', `ws://127.0.0.1:${portOf(server, 'webSocketPort')}`)
    .replaceAll('authority.pem', certificate('authority.pem'))
    .replaceAll('client.pem', certificate('alice.pem'))
}

function start(dataDir: string): Promise<Server> {
  return createServer({
    dataDir,
    clientPort: 0,
    webSocketPort: 0,
    secureClientPort: 0,
    sslKeyStoreLocation: certificate('server.pem'),
    sslTrustStoreLocation: certificate('authority.pem'),
    sslClientAuth: 'want',
    saslUsers: { bob: 'secret' },
  })
}

beforeAll(async () => {
  // Browsers have a global WebSocket; Node before 22 does not.
  const { WebSocket } = createRequire(new URL('../../runtime/package.json', import.meta.url))('ws') as {
    WebSocket: unknown
  }
  vi.stubGlobal('WebSocket', WebSocket)
})
afterAll(() => {
  vi.unstubAllGlobals()
  rmSync(folder, { recursive: true })
})

describe('the examples of the README', () => {
  it.each(examples)('$name', async ({ code, language, file }) => {
    const server = await start(mkdtempSync(join(folder, 'data-')))
    const client = await connect({ servers: `127.0.0.1:${portOf(server, 'clientPort')}` })
    const printed: string[] = []
    const show = (word: unknown): string => (typeof word === 'string' ? word : inspect(word))
    const log = (...words: unknown[]): void => void printed.push(words.map(show).join(' '))
    try {
      writeFileSync(file, moduleOf(onThisMachine(code, server), language))
      const example = (await import(/* @vite-ignore */ file)) as {
        default: (context: ExampleContext) => Promise<void>
      }
      await example.default({ client, bytes, console: { log } })
      const expected = promised(code)
      expect(printed.filter((line) => expected.includes(line))).toEqual(expected)
    } finally {
      await client.close()
      await server.close()
    }
  })

  it('pass the type checker', () => {
    // Node types the messages of its channels as unknown, which JavaScript cannot narrow.
    const checked = examples.filter(({ code }) => !code.includes('node:diagnostics_channel'))
    for (const { code, language, file } of checked) writeFileSync(file, moduleOf(code, language))
    const base = resolve(import.meta.dirname, '../../../tsconfig.base.json')
    const compilerOptions = {
      noEmit: true,
      allowJs: true,
      checkJs: true,
      useUnknownInCatchVariables: false,
      rewriteRelativeImportExtensions: false,
      noUnusedLocals: false,
      noUnusedParameters: false,
      types: ['node'],
      typeRoots: [resolve(import.meta.dirname, '../../../node_modules/@types')],
    }
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    const config = join(folder, 'tsconfig.json')
    writeFileSync(
      config,
      JSON.stringify({ extends: base, compilerOptions, files: checked.map(({ file }) => file) }),
    )
    const tsc = resolve(import.meta.dirname, '../../../node_modules/typescript/bin/tsc')
    const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', config], { encoding: 'utf8' })
    expect(stdout).toBe('')
    expect(status).toBe(0)
  })
})

it('examples in JavaScript have no syntax that Node 20 lacks', () => {
  const scripts = examples.filter(({ language }) => language === 'js')
  // One example shows what TypeScript adds.
  expect(scripts.length).toBe(examples.length - 1)
  for (const { code } of scripts) expect(code).not.toMatch(/^\s*(await )?using /m)
})

it('no section of the README is longer than 64 lines', () => {
  const sections = readme.split(/^## /m).map((text) => ({
    title: text.split('\n')[0],
    lines: text.split('\n').length,
  }))
  expect(sections.filter(({ lines }) => lines > 64)).toEqual([])
})
