import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SeededRandom } from '@zabra/runtime'
import { nodeClock, nodeCryptography } from '@zabra/runtime/node'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Catalog } from './catalog.ts'
import { TargetError } from './errors.ts'
import { httpSource } from './http-source.ts'
import { decodeManifest, encodeManifest, type SnapshotManifest } from './manifest.ts'
import { findPrunable } from './prune.ts'
import { S3Target } from './s3-target.ts'
import { chunksOf } from './target.ts'

/** A clock that does not wait between attempts. */
const clock = {
  wall: () => Date.now(),
  after: (ms: number, name: string, action: () => void) =>
    nodeClock.after(ms >= 60_000 ? ms : 0, name, action),
}

let server: Server
let target: S3Target
const seen: string[] = []
let respond: (incoming: IncomingMessage, response: ServerResponse) => void

beforeEach(async () => {
  seen.length = 0
  server = createServer((incoming, response) => {
    incoming.resume()
    response.on('error', () => {})
    seen.push(`${incoming.method} ${incoming.url}`)
    respond(incoming, response)
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  target = new S3Target({
    bucket: 'bucket',
    prefix: 'backups',
    region: 'here',
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    credentials: async () => ({ accessKeyId: 'ada', secretAccessKey: 'hidden' }),
    cryptography: nodeCryptography,
    clock,
  })
})

afterEach(() => {
  server.closeAllConnections()
  server.close()
})

const xml = (text: string) => (_: IncomingMessage, response: ServerResponse) => void response.end(text)
const keys = (...names: string[]): string => names.map((name) => `<Key>${name}</Key>`).join('')

describe('a hostile store of S3', () => {
  it('has no names that lead out of a folder', async () => {
    const names = ['..', '../other', 'a/b', '.', '%2e%2e', '%2e%2e%2fother', 'x'.repeat(201), 'sound-1.json']
    respond = xml(keys(...names.map((name) => `backups/manifest/${name}`), 'elsewhere', 'backups/manifest/'))
    expect(await target.list('manifest')).toEqual(['sound-1.json'])
    const old = '-1-0a1b2c3d.gz'
    const listed = xml(
      keys(`backups/snapshot/../../other/x${old}`, `backups/snapshot/..`, `backups/snapshot/1${old}`),
    )
    respond = (request, response) => {
      if (!request.url!.endsWith('/lineage')) return listed(request, response)
      response.statusCode = 404
      response.end()
    }
    const store = { target, cryptography: nodeCryptography, random: new SeededRandom(1), key: undefined }
    const empty = { snapshots: [], logs: [], bad: [], replaced: () => [] } as unknown as Catalog
    const { pieces } = await findPrunable(store, empty, [], Date.now())
    expect(pieces).toEqual([`snapshot/1${old}`])
  })

  it('has no manifest whose piece is the folder', () => {
    const manifest: SnapshotManifest = {
      format: 1,
      lineage: '0'.repeat(32),
      time: 1,
      server: 'one',
      key: null,
      kind: 'snapshot',
      file: 'snapshot.1',
      zxid: 1,
      exactAt: 1,
      nodes: 1,
      digest: null,
      piece: { name: 'snapshot/1.gz', bytes: 1, sha256: '0'.repeat(64) },
    }
    const decode = (name: string, file = 'snapshot.1') =>
      decodeManifest(
        encodeManifest({ ...manifest, file, piece: { ...manifest.piece, name } }, nodeCryptography),
        'x.json',
        nodeCryptography,
      )
    expect(decode('snapshot/1.gz')).toMatchObject(manifest)
    for (const name of ['snapshot/..', 'snapshot/.', 'snapshot/../x', '../x', '/etc/passwd', 'snapshot/a/b'])
      expect(() => decode(name), name).toThrow(/is no manifest/)
    for (const file of ['../snapshot.1', '/snapshot.1', 'snapshot.1/..', 'snapshot.1.gz.gz'])
      expect(() => decode('snapshot/1.gz', file), file).toThrow(/is no manifest/)
  })

  it('is refused when it lists names without end, or that cannot be decoded', async () => {
    let page = 0
    const names = keys('backups/log/a').repeat(100_000)
    respond = (_, response) =>
      void response.end(
        `${names}<IsTruncated>true</IsTruncated><NextContinuationToken>${page++}</NextContinuationToken>`,
      )
    await expect(target.list('log')).rejects.toThrow(/at most 1000000 names, got more/)
    expect(page).toBe(11)
    respond = xml(keys('backups/log/%E0%A4%A'))
    await expect(target.list('log')).rejects.toBeInstanceOf(TargetError)
    await expect(target.listUnfinished(0)).resolves.toEqual([])
    respond = xml(`<Upload>${keys('%E0%A4%A')}</Upload>`)
    await expect(target.listUnfinished(0)).rejects.toBeInstanceOf(TargetError)
  })

  it('costs time in proportion to an answer with uploads that do not end', async () => {
    respond = xml('<Upload>'.repeat(500_000))
    expect(await target.listUnfinished(Date.now())).toEqual([])
  })

  it('is cut when its answer does not end', async () => {
    const chunk = Buffer.alloc(1 << 20)
    let sent = 0
    respond = (_, response) => {
      const more = (): void => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length
      }
      response.on('drain', more)
      more()
    }
    await expect(target.open('lineage')).rejects.toThrow(/an answer of at most 8388608 bytes/)
    await expect(target.list('manifest')).rejects.toThrow(/an answer of at most 8388608 bytes/)
    // What is in flight on the way, for each of the two.
    expect(sent).toBeLessThan(64 << 20)
  })

  it.each([
    [200, true, 1],
    [412, false, 1],
    [409, false, 1],
    [501, true, 2],
  ])(
    'creates an object by a condition, which it answers with %i: %s',
    async (status, isCreated, requests) => {
      const conditions: unknown[] = []
      respond = ({ headers }, response) => {
        conditions.push(headers['if-none-match'])
        response.statusCode = headers['if-none-match'] === undefined ? 200 : status
        response.end()
      }
      expect(await target.create('lineage', new Uint8Array(3))).toBe(isCreated)
      expect(conditions).toEqual(['*', undefined].slice(0, requests))
    },
  )

  it('redirects no request, with its signature, to another host', async () => {
    for (const status of [301, 302, 307, 308]) {
      respond = (_, response) =>
        void response
          .writeHead(status, { location: `http://127.0.0.1:${(server.address() as AddressInfo).port}/taken` })
          .end()
      await expect(target.open('lineage')).rejects.toThrow(`status ${status}`)
    }
    expect(seen.filter((line) => line.includes('taken'))).toEqual([])
  })

  it('is not blamed for credentials that have ended, nor for another region', async () => {
    const refusals = [
      ['<Code>ExpiredToken</Code>', /Check the credentials/],
      ['<Code>InvalidToken</Code>', /Check the credentials/],
      [
        '<Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region>',
        /the region eu-west-1\. Set the region/,
      ],
    ] as const
    for (const [text, message] of refusals) {
      respond = (_, response) => void response.writeHead(400).end(`<Error>${text}</Error>`)
      await expect(target.open('lineage')).rejects.toThrow(message)
    }
  })

  it('is refused, or read as a short object, when lengths and ranges are not those that were asked for', async () => {
    const withRange = (range: string, length: number) => (_: IncomingMessage, response: ServerResponse) =>
      void response.writeHead(206, { 'content-range': range }).end(Buffer.alloc(length))
    for (const range of ['bytes 5-9/10', 'bytes 0-9/*', 'bytes */10', 'bytes 0-9/99999999999999999', 'x']) {
      respond = withRange(range, 10)
      await expect(target.open('x'), range).rejects.toThrow(/got an answer without that range/)
    }
    // A promise of more than there is.
    respond = (incoming, response) =>
      withRange(`${incoming.headers.range!.replace('=', ' ').replace(/-.*/, '-1')}/1000000`, 0)(
        incoming,
        response,
      )
    let bytes = 0
    for await (const chunk of chunksOf(await target.open('x'))) bytes += chunk.length
    expect(bytes).toBe(0)
    // An answer that is cut short.
    respond = (_, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('half', () => response.destroy())
    }
    await expect(target.open('x')).rejects.toThrow(/did not answer as expected in 6 attempts/)
  })

  it('keeps what is wrong with a thousand manifests', async () => {
    const names = Array.from({ length: 1200 }, (_, i) => `backups/manifest/log-${i}.json`)
    respond = (incoming, response) => {
      if (incoming.url!.includes('list-type')) response.end(keys(...names))
      else if (incoming.url!.includes('lineage')) response.end('0'.repeat(32))
      else response.end('[]')
    }
    const store = { target, cryptography: nodeCryptography, random: new SeededRandom(1), key: undefined }
    const { bad } = await Catalog.read(store)
    expect(bad).toHaveLength(1000)
  })
})

it('a server that sends more of a snapshot than it has said is cut', async () => {
  let sent = 0
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (; sent < 1000; sent++) yield new Uint8Array(100)
  }
  async function* taken(): AsyncGenerator<Uint8Array> {
    yield new TextEncoder().encode('{"file":"snapshot.1","zxid":"0x1","bytes":1000}')
  }
  const source = httpSource('one', async (method) => ({
    status: 200,
    headers: {},
    chunks: method === 'POST' ? taken() : endless(),
  }))
  const { chunks } = await source.takeSnapshot()
  let received = 0
  const receive = async (): Promise<void> => {
    for await (const { length } of chunks) received += length
  }
  await expect(receive()).rejects.toThrow('Expected 1000 bytes of snapshot.1, got more')
  expect([received, sent]).toEqual([1000, 10])
})
