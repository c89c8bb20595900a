import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { otherRuntimes } from './harness/requirements.ts'
import { packedApp, PACKING_MS } from './harness/packed-app.ts'
import { freePort } from './harness/ports.ts'
import { serverUnderTest, run, Server } from './harness/servers.ts'

/** Calls of each kind, watches, a burst of requests and a large value. The process must exit after close(). */
const scenario = `
const [entry, servers] = process.argv.slice(2)
const { connect, utf8 } = await import(entry)
const client = await connect({ servers, sessionTimeoutMs: 6000, signal: AbortSignal.timeout(10_000) })
const path = '/from-' + process.pid
const texts = client.withCodec(utf8)
await texts.create(path, 'hello', { mode: 'ephemeral' })
const watch = await client.watchOnce(path, 'data')
await texts.set(path, 'changed')
console.log((await watch.fired).type)
const many = await Promise.all(Array.from({ length: 500 }, () => texts.get(path)))
console.log(many.filter(({ value }) => value === 'changed').length)
const big = new Uint8Array(700_000).map((_, i) => i % 251)
await client.setData(path, big)
const { data } = await client.getData(path)
console.log(data.length, data.every((byte, i) => byte === i % 251))
await client.getData('/none').catch((error) => console.log(error.name, error.code))
const watcher = await client.watch(path, { mode: 'persistentRecursive' })
await client.delete(path)
for await (const event of watcher) {
  console.log(event.type)
  break
}
console.log(client.session.id !== 0n, client.leaseHorizon > 0)
await client.close()
console.log(client.state)
`
const expected = [
  'nodeDataChanged',
  '500',
  '700000 true',
  'NoNodeError NO_NODE',
  'nodeDeleted',
  'true true',
  'closed',
]

const runtimes = otherRuntimes()
const name = 'the client from packed tarballs'
if (runtimes.length === 0) {
  describe.skip(`${name} on Deno and Bun (skipped: ZABRA_RUNTIMES names none that runs)`, () => {
    it('works', () => {})
  })
} else {
  let app: string
  let server: Server
  let webSocketPort: number
  beforeAll(async () => {
    app = await packedApp()
    writeFileSync(join(app, 'scenario.mjs'), scenario)
    webSocketPort = await freePort()
    server = await Server.start({ kind: serverUnderTest, config: { tickTime: 500, webSocketPort } })
  }, PACKING_MS)
  afterAll(() => server[Symbol.asyncDispose]())

  describe.each(runtimes)(`${name} on %s`, (_version, program, args) => {
    const transports: readonly (readonly [transport: string, entry: string, address: () => string])[] = [
      ['over TCP', '@zabra/client', () => server.address],
      ['over WebSockets', '@zabra/client', () => `ws://127.0.0.1:${webSocketPort}/zabra`],
      ['as in a browser', '@zabra/client/web', () => `ws://127.0.0.1:${webSocketPort}/zabra`],
    ]
    it.each(transports)(
      'works %s, and the process exits after close()',
      async (_transport, entry, address) => {
        const ran = await run(program, [...args, join(app, 'scenario.mjs'), entry, address()])
        expect(ran.output.trim().split('\n')).toEqual(expected)
        expect(ran.code).toBe(0)
      },
    )
  })
}
