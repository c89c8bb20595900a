import { cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { otherNodes } from './harness/requirements.ts'
import { packedApp } from './harness/packed-app.ts'
import { freePort } from './harness/ports.ts'
import { ours, run, scratch, Server } from './harness/servers.ts'

/** What a user does first with the client, in two ways of loading it. */
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

/** What the first session over plain TCP has loaded of what only other connections need. */
const lean = `
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
    `${lean}\nawait main(await import('@zabra/client'), process.argv[2])\n`,
  )
  writeFileSync(join(app, 'lean.cjs'), `${lean}\nmain(require('@zabra/client'), process.argv[2])\n`)
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
}, 120_000)

describe('the client from packed tarballs in an empty folder', () => {
  it('brings nothing but our own packages and ws', () => {
    const modules = join(app, 'node_modules')
    expect(readdirSync(modules).filter((name) => !name.startsWith('.'))).toEqual(['@zabra', 'ws'])
    expect(readdirSync(join(modules, '@zabra')).toSorted()).toEqual(['client', 'protocol', 'runtime'])
  })

  it('works without ws over TCP, and says what is missing over WebSockets', async () => {
    const bare = join(scratch('bare'), 'app')
    cpSync(app, bare, { recursive: true })
    rmSync(join(bare, 'node_modules/ws'), { recursive: true })
    const webSocketPort = await freePort()
    await using server = await Server.start({ kind: ours, config: { webSocketPort } })
    const plain = await run(process.execPath, [join(bare, 'esm.mjs'), server.address])
    expect(plain).toMatchObject({ output: 'hello\n', code: 0 })
    const url = `ws://127.0.0.1:${webSocketPort}/zabra`
    writeFileSync(
      join(bare, 'told.mjs'),
      `import { connect } from '@zabra/client'
const enough = new AbortController()
const attempt = ({ error }) => enough.abort(error)
await connect({ servers: process.argv[2], signal: enough.signal, instrumentation: { attempt } }).catch(
  ({ message }) => console.log(message),
)
`,
    )
    const told = await run(process.execPath, [join(bare, 'told.mjs'), url])
    expect(told.output).toContain(
      `Cannot connect to ${url} (ERR_MODULE_NOT_FOUND): the package ws cannot be loaded; install what @zabra/runtime depends on`,
    )
    expect(told.code).toBe(0)
  })

  const others = otherNodes()
  if (others.length === 0) {
    describe.skip('on other releases of Node (skipped: ZABRA_NODES names none that runs)', () => {
      it('works', () => {})
    })
  }

  describe.each([['this Node', process.execPath] as const, ...others])('on %s', (_name, node) => {
    it.each(['esm.mjs', 'required.cjs'])('works when it is loaded by %s', async (file) => {
      await using server = await Server.start({ kind: ours })
      const ran = await run(node, ['--no-warnings', join(app, file), server.address])
      expect(ran.output).toBe('hello\n')
      expect(ran.code).toBe(0)
    })

    it.each(['lean.mjs', 'lean.cjs'])(
      'loads no TLS, HTTP, compression or cryptography for a session over TCP (%s)',
      async (file) => {
        await using server = await Server.start({ kind: ours })
        const ran = await run(node, ['--no-warnings', join(app, file), server.address])
        expect(ran.output).toBe('true\n\n')
        expect(ran.code).toBe(0)
      },
    )

    it('works in several worker threads at once', async () => {
      await using server = await Server.start({ kind: ours })
      const ran = await run(node, ['--no-warnings', join(app, 'workers.mjs'), server.address])
      expect(ran.output).toBe('nodeDeleted\n'.repeat(3))
      expect(ran.code).toBe(0)
    })
  })
})
