import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { otherNodes } from './harness/available.ts'
import { packedApp } from './harness/packed.ts'
import { ours, run, Server } from './harness/servers.ts'

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

  const others = otherNodes()
  if (others.length === 0) {
    describe.skip('on other releases of Node (skipped: ZABRA_NODES names none)', () => {
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

    it('works in several worker threads at once', async () => {
      await using server = await Server.start({ kind: ours })
      const ran = await run(node, ['--no-warnings', join(app, 'workers.mjs'), server.address])
      expect(ran.output).toBe('nodeDeleted\n'.repeat(3))
      expect(ran.code).toBe(0)
    })
  })
})
