import { cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { otherNodes } from './harness/requirements.ts'
import { packedApp, PACKING_MS } from './harness/packed-app.ts'
import { freePort } from './harness/ports.ts'
import { serverUnderTest, run, scratch, Server, spawnOwned } from './harness/servers.ts'

const root = resolve(import.meta.dirname, '../../..')

/** A first use of the client. */
const body = `
async function main({ connect, utf8 }, servers) {
  const client = await connect({ servers, signal: AbortSignal.timeout(10_000) })
  const path = '/from-' + process.pid
  await client.withCodec(utf8).create(path, 'hello', { mode: 'ephemeral' })
  const { value } = await client.withCodec(utf8).get(path)
  await client.close()
  console.log(value)
}
`

/** Prints whether a first session over TCP has loaded net, and which modules of other transports it has loaded. */
const loadedModules = `
const before = new Set(process.moduleLoadList)
async function main({ connect }, servers) {
  const client = await connect({ servers })
  await client.exists('/')
  await client.close()
  const loaded = process.moduleLoadList.filter((name) => !before.has(name))
  console.log(loaded.includes('NativeModule net'))
  console.log(loaded.filter((name) => /^NativeModule (internal.)?_?(tls|https?|zlib|crypto)\\b/.test(name)).join())
}
`

let app: string
beforeAll(async () => {
  app = await packedApp()
  writeFileSync(
    join(app, 'esm.mjs'),
    `import * as client from '@zabra/client'\n${body}\nawait main(client, process.argv[2])\n`,
  )
  writeFileSync(
    join(app, 'required.cjs'),
    `const client = require('@zabra/client')\n${body}\nmain(client, process.argv[2])\n`,
  )
  writeFileSync(
    join(app, 'lean.mjs'),
    `${loadedModules}\nawait main(await import('@zabra/client'), process.argv[2])\n`,
  )
  writeFileSync(join(app, 'lean.cjs'), `${loadedModules}\nmain(require('@zabra/client'), process.argv[2])\n`)
  writeFileSync(
    join(app, 'workers.mjs'),
    `import { Worker } from 'node:worker_threads'
for (let i = 0; i < 3; i++) new Worker(new URL('worker.mjs', import.meta.url), { argv: [process.argv[2], i] })
`,
  )
  writeFileSync(
    join(app, 'worker.mjs'),
    `import { connect } from '@zabra/client'
const [servers, name] = process.argv.slice(2)
const client = await connect({ servers, signal: AbortSignal.timeout(10_000) })
await client.create('/worker-' + name, undefined, { mode: 'ephemeral' })
const watch = await client.watchOnce('/worker-' + name, 'data')
await client.delete('/worker-' + name)
console.log((await watch.fired).type)
await client.close()
`,
  )
}, PACKING_MS)

describe('the client from packed tarballs in an empty folder', () => {
  it('installs only @zabra packages, ws and the ASN.1 library of the runtime', () => {
    const modules = join(app, 'node_modules')
    const asn1 = ['@peculiar', 'asn1js', 'pvtsutils', 'pvutils', 'tslib']
    expect(readdirSync(modules).filter((name) => !name.startsWith('.'))).toEqual(
      [...asn1, '@zabra', 'ws'].toSorted(),
    )
    expect(readdirSync(join(modules, '@zabra')).toSorted()).toEqual([
      'client',
      'protocol',
      'recipes',
      'runtime',
    ])
  })

  it('holds no sources, source maps or tests', () => {
    const files = readdirSync(join(app, 'node_modules/@zabra'), { recursive: true }).map(String)
    expect(files.length).toBeGreaterThan(100)
    expect(files.filter((name) => /\.map$|\.test\.|\/src(?:\/|$)|(?<!\.d)\.ts$/.test(name))).toEqual([])
  })

  const page = `import { connect, json, NoNodeError } from '@zabra/client'
import { Mutex } from '@zabra/recipes'
import { revoke } from '@zabra/recipes/revocable'
const client = await connect({ servers: 'wss://zk.example.com/zabra' })
console.log(NoNodeError, json<{ a: number }>(), Mutex, revoke, client.state)
const { data } = await client.getData('/picture')
console.log(new Blob([data]), await crypto.subtle.digest('SHA-256', data))
`
  it('passes the type checker in a browser project without the types of Node', async () => {
    const compilerOptions = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      noEmit: true,
      target: 'es2022',
      module: 'esnext',
      moduleResolution: 'bundler',
      types: [],
      lib: ['ES2022', 'DOM'],
    }
    writeFileSync(join(app, 'page.mts'), page)
    writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['page.mts'] }))
    const checked = await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', app])
    expect(checked.output).toBe('')
    expect(checked.code).toBe(0)
  })

  it('passes the type checker in a program for Node that a bundler builds', async () => {
    const compilerOptions = {
      strict: true,
      skipLibCheck: false,
      noEmit: true,
      target: 'es2022',
      module: 'esnext',
      moduleResolution: 'bundler',
      lib: ['ES2023'],
      types: ['node'],
      typeRoots: [join(root, 'node_modules/@types')],
    }
    writeFileSync(
      join(app, 'program.mts'),
      `import { compressed, connect, findServers, fourLetterWord, nodeTransport, utf8 } from '@zabra/client/node'
import { Mutex } from '@zabra/recipes'
const client = await connect({ servers: 'tls://a', transport: nodeTransport(), batchReads: true })
console.log(new Mutex(client, '/lock'), compressed(utf8), findServers, fourLetterWord)
`,
    )
    const config = join(app, 'tsconfig.program.json')
    writeFileSync(config, JSON.stringify({ compilerOptions, files: ['program.mts'] }))
    const checked = await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', config])
    expect(checked.output).toBe('')
    expect(checked.code).toBe(0)
  })

  it('works over TCP without ws, and names the missing package over WebSockets', async () => {
    const bare = join(scratch('bare'), 'app')
    cpSync(app, bare, { recursive: true })
    rmSync(join(bare, 'node_modules/ws'), { recursive: true })
    const webSocketPort = await freePort()
    await using both = await Server.start({ kind: serverUnderTest, config: { webSocketPort } })
    const plain = await run(process.execPath, [join(bare, 'esm.mjs'), both.address])
    expect(plain).toMatchObject({ output: 'hello\n', code: 0 })
    const url = `ws://127.0.0.1:${webSocketPort}/zabra`
    writeFileSync(
      join(bare, 'missing.mjs'),
      `import { connect } from '@zabra/client'
const enough = new AbortController()
const attempt = ({ error }) => enough.abort(error)
await connect({ servers: process.argv[2], signal: enough.signal, instrumentation: { attempt } }).catch(
  ({ message }) => console.log(message),
)
`,
    )
    const missing = await run(process.execPath, [join(bare, 'missing.mjs'), url])
    expect(missing.output).toContain(
      `Cannot connect to ${url} (ERR_MODULE_NOT_FOUND): the package ws cannot be loaded; install what @zabra/runtime depends on`,
    )
    expect(missing.code).toBe(0)
  })

  let server: Server
  beforeAll(async () => {
    server = await Server.start({ kind: serverUnderTest })
  }, 120_000)

  const others = otherNodes()
  if (others.length === 0) {
    describe.skip('on other releases of Node (skipped: ZABRA_NODES names none that runs)', () => {
      it('works', () => {})
    })
  }

  describe.each([['this Node', process.execPath] as const, ...others])('on %s', (_name, node) => {
    it.each(['esm.mjs', 'required.cjs'])('works when loaded by %s', async (file) => {
      const ran = await run(node, ['--no-warnings', join(app, file), server.address])
      expect(ran.output).toBe('hello\n')
      expect(ran.code).toBe(0)
    })

    it.each(['lean.mjs', 'lean.cjs'])(
      'loads no TLS, HTTP, compression or cryptography for a session over TCP (%s)',
      async (file) => {
        const ran = await run(node, ['--no-warnings', join(app, file), server.address])
        expect(ran.output).toBe('true\n\n')
        expect(ran.code).toBe(0)
      },
    )

    it('works in several worker threads', async () => {
      const ran = await run(node, ['--no-warnings', join(app, 'workers.mjs'), server.address])
      expect(ran.output).toBe('nodeDeleted\n'.repeat(3))
      expect(ran.code).toBe(0)
    })
  })
})

describe('the programs from packed tarballs in an empty folder', () => {
  let programs: string
  beforeAll(async () => {
    programs = await packedApp(['apps/cli', 'apps/server'])
    writeFileSync(
      join(programs, 'loaded.mjs'),
      `process.on('exit', () => {
  const names = process.moduleLoadList.filter((name) => /^NativeModule (internal.)?_?(tls|https?|zlib|crypto)\\b/.test(name))
  process.stderr.write(names.join())
})
`,
    )
  }, 120_000)

  it('hold no sources and no source maps', () => {
    const files = ['zabra', 'zabrad'].flatMap((name) =>
      readdirSync(join(programs, 'node_modules', name), { recursive: true }).map(
        (file) => `${name}/${String(file)}`,
      ),
    )
    expect(files).toContain('zabrad/dist/main.js')
    expect(files.filter((name) => /\.map$|\.test\.|\/src(?:\/|$)|(?<!\.d)\.ts$/.test(name))).toEqual([])
  })

  it('install nothing else', () => {
    const names = readdirSync(join(programs, 'node_modules')).filter((name) => !name.startsWith('.'))
    expect(names).toEqual(['zabra', 'zabrad'])
  })

  const nodes = [['this Node', process.execPath] as const, ...otherNodes()]
  it.each(nodes)('serve and read on %s, without TLS and HTTP for a read', async (_name, node) => {
    const port = await freePort()
    const bin = (name: string): string => join(programs, 'node_modules', name, 'dist/main.js')
    const args = ['--port', String(port), '--data', scratch('programs')]
    const server = spawnOwned(node, [bin('zabrad'), ...args])
    const ended = once(server, 'exit')
    try {
      await new Promise<void>((serving, failed) => {
        let output = ''
        const read = (chunk: Buffer): void => {
          output += chunk.toString()
          if (output.includes('ready for clients')) serving()
        }
        server.stdout.on('data', read)
        server.stderr.on('data', read)
        server.once('exit', () => failed(new Error(`The server ended: ${output}`)))
      })
      const zabra = (...command: string[]): ReturnType<typeof run> =>
        run(node, ['--no-warnings', bin('zabra'), ...command, '--server', `127.0.0.1:${port}`])
      expect(await zabra('create', '/greeting', 'hello')).toMatchObject({ code: 0, output: '/greeting\n' })
      expect(await zabra('status')).toMatchObject({ code: 0 })
      const loaded = ['--import', pathToFileURL(join(programs, 'loaded.mjs')).href]
      const get = ['get', '/greeting', '--server', `127.0.0.1:${port}`]
      expect(await run(node, ['--no-warnings', ...loaded, bin('zabra'), ...get])).toMatchObject({
        code: 0,
        output: 'hello',
      })
    } finally {
      server.kill()
      await ended
    }
  })
})
