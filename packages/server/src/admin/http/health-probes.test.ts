import { MemoryDisk, type DiskReader } from '@zabra/runtime'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createServer } from '../../server.ts'
import { TestServer } from '../../testing/test-server.ts'

/** A disk that calls back before each read of a log or a snapshot. */
class WatchedDisk extends MemoryDisk {
  beforeRead: (() => Promise<void>) | undefined

  override async openRead(path: string): Promise<DiskReader> {
    const reader = await super.openRead(path)
    if (!/\/(?:log|snapshot)\.[\da-f]+$/.test(path)) return reader
    return {
      size: () => reader.size(),
      close: () => reader.close(),
      read: async (into, position) => {
        await this.beforeRead?.()
        return reader.read(into, position)
      },
    }
  }
}

interface Start {
  readonly phase: string
  readonly percent: number | null
  readonly etaSeconds: number | null
}

let server: TestServer
afterEach(() => server.stop())

/** Starts a server with so many large nodes in its snapshot, and in its log after that. */
async function startLoaded(disk: MemoryDisk, nodes: number): Promise<void> {
  server = await TestServer.start({}, disk)
  const client = await server.connect()
  for (const phase of ['a', 'b']) {
    for (let i = 0; i < nodes; i++) client.create(i, `/${phase}${i}`, 0, 'x'.repeat(500_000))
    await server.untilIdle()
    if (phase === 'a') await server.server.snapshot()
  }
}

describe('a server that starts', () => {
  it('says how far it has read its snapshot and its log, never going back, and never 100 %', async () => {
    const disk = new WatchedDisk()
    await startLoaded(disk, 10)
    await server.stop()
    const starts: Start[] = []
    const details: string[] = []
    let release: (() => void) | undefined
    disk.beforeRead = () => new Promise((resolve) => (release = resolve))
    let isStarted = false
    const starting = createServer(server.settings, server.platform()).then((started) => {
      isStarted = true
      return started
    })
    while (!isStarted) {
      await server.untilIdle()
      const read = release
      if (read === undefined) continue
      release = undefined
      server.clock.advance(500)
      const started = await server.http.request('/startupz')
      expect([started.status, started.headers['content-type']]).toEqual([503, 'application/json'])
      starts.push(JSON.parse(started.text) as Start)
      details.push((await server.http.request('/readyz?verbose')).text)
      read()
    }
    server.server = await starting
    const percents = starts.flatMap(({ percent }) => percent ?? [])
    expect(percents).toEqual(percents.toSorted((a, b) => a - b))
    expect(new Set(percents).size).toBeGreaterThan(10)
    expect(percents.at(-1)).toBeLessThan(100)
    expect(percents.at(-1)).toBeGreaterThan(80)
    const phases = starts.map(({ phase }) => phase)
    expect(phases).toEqual(phases.toSorted((a, b) => (a === b ? 0 : a === 'snapshot' ? -1 : 1)))
    expect(new Set(phases)).toEqual(new Set(['snapshot', 'replay']))
    const half = starts.findIndex(({ percent }) => percent !== null && percent >= 50)
    const left = (starts.length - half) / 2
    expect(starts[half]!.etaSeconds).toBeGreaterThan(left / 2)
    expect(starts[half]!.etaSeconds).toBeLessThan(left * 2)
    expect(details.some((text) => /^\[-\]recovery reads the snapshot: \d+ %, about \d+ s$/m.test(text))).toBe(
      true,
    )
    expect(details.some((text) => /^\[-\]recovery reads the log: \d+ %, about \d+ s$/m.test(text))).toBe(true)
    expect(await server.http.request('/startupz')).toMatchObject({ status: 200, text: 'ok\n' })
  })
})

it('/readyz leaves out each check that a parameter `exclude` names', async () => {
  server = await TestServer.start()
  const checksWithout = async (query: string): Promise<string[]> => {
    const { text } = await server.http.request(`/readyz?verbose&${query}`)
    return [...text.matchAll(/^\[\+\](\S+)/gm)].map(([, name]) => name!)
  }
  expect(await checksWithout('')).toEqual(expect.arrayContaining(['draining', 'role', 'log']))
  for (const query of ['exclude=draining,role,log', 'exclude=draining&exclude=role,log'])
    expect(await checksWithout(query)).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^(?:draining|role|log)$/)]),
    )
})

it('a start that is ended while it reads its data rejects at once, and leaves the folder and the ports to the next one', async () => {
  const disk = new WatchedDisk()
  await startLoaded(disk, 3)
  await server.stop()
  const before = disk.paths()
  for (const phase of ['snapshot', 'replay']) {
    const controller = new AbortController()
    const reason = new Error('stopped by a signal')
    let reads = 0
    disk.beforeRead = async () => {
      const { text } = await server.http.request('/startupz')
      if ((JSON.parse(text) as Start).phase !== phase) return
      controller.abort(reason)
      reads++
    }
    const start = createServer(server.settings, server.platform(), { signal: controller.signal })
    await expect(start).rejects.toBe(reason)
    expect(reads).toBeLessThan(5)
    expect(disk.paths()).toEqual(before)
    await expect(server.http.request('/startupz')).rejects.toThrow()
  }
  disk.beforeRead = undefined
  const controller = new AbortController()
  server.server = await createServer(server.settings, server.platform(), { signal: controller.signal })
  controller.abort()
  expect(server.server.stats().nodes).toBeGreaterThan(6)
  expect((await server.http.request('/readyz')).text).toBe('ok\n')
})

it('a start that is ended while it writes the first snapshot rejects, and leaves none', async () => {
  server = await TestServer.start()
  await server.stop()
  const disk = new MemoryDisk()
  const controller = new AbortController()
  disk.beforeWrite = async () => {
    // The lock of the folder is created before, in one.
    if (disk.writes > 0) controller.abort()
  }
  const start = createServer(server.settings, { ...server.platform(), disk }, { signal: controller.signal })
  await expect(start).rejects.toMatchObject({ name: 'AbortError' })
  expect(disk.paths()).toEqual(['/data/session.secret'])
})

describe('/livez', () => {
  const hang = async (settings: Parameters<typeof TestServer.start>[0]): Promise<() => Promise<string>> => {
    server = await TestServer.start(settings)
    const client = await server.connect()
    const release = server.blockDisk()
    client.create(1, '/a')
    await server.untilIdle()
    return async () => {
      const { status, text } = await server.http.request('/livez')
      // A server can be stopped only with its disk.
      release()
      return `${status} ${text.trimEnd()}`
    }
  }

  it('fails while a write of the log is in flight for longer than admin.livez.stallMs', async () => {
    const livez = await hang({ adminLivezStallMs: 2000 })
    await server.advance(2000)
    expect((await server.http.request('/livez')).status).toBe(200)
    await server.advance(500)
    expect(await livez()).toBe('503 a write of the log has been in flight for 2.5 s (limit 2.0 s)')
    await server.untilIdle()
    expect((await server.http.request('/livez')).status).toBe(200)
  })

  it('does not look at writes without it', async () => {
    const livez = await hang({})
    await server.advance(600_000)
    expect(await livez()).toBe('200 ok')
  })
})

describe('admin.hsts', () => {
  const policyOf = async (path: string, isSecure: boolean): Promise<string | undefined> =>
    (await server.http.request(path, { isSecure })).headers['strict-transport-security']

  it('has browsers use HTTPS, for answers that come over it alone', async () => {
    server = await TestServer.start({ adminHstsMs: 86_400_500 })
    for (const path of ['/livez', '/commands', '/nothing', '/metrics']) {
      expect(await policyOf(path, true)).toBe('max-age=86400')
      expect(await policyOf(path, false)).toBeUndefined()
    }
  })

  it('is in answers to requests that are not understood, and to those that fail', async () => {
    server = await TestServer.start({ adminHstsMs: 86_400_000, adminRoleBackup: ['ip:127.0.0.1'] })
    const policy = { 'strict-transport-security': 'max-age=86400' }
    const problem = { ...policy, 'content-type': 'application/problem+json' }
    const cut = await server.http.request('/api/v1/self', { isSecure: true, isQueryCut: true })
    expect(cut).toMatchObject({ status: 400, headers: problem })
    const [title, advice] = [
      'Too many parameters',
      'Expected 64 at most: leave out those that are not known.',
    ]
    expect(JSON.parse(cut.text)).toMatchObject({ title, status: 400, detail: advice })
    for (const [path, type, body] of [
      ['/metrics', 'text/plain', `${title}. ${advice}\n`],
      [
        '/commands/ruok',
        'application/json',
        `{\n  "command" : "ruok",\n  "error" : "${title}. ${advice}"\n}`,
      ],
    ] as const) {
      const answer = await server.http.request(path, { isSecure: true, isQueryCut: true })
      expect(answer).toMatchObject({ status: 400, headers: policy, text: body })
      expect(answer.headers?.['content-type']).toContain(type)
    }
    server.disk.putFile('/data/version-2/snapshot.7', new Uint8Array(8))
    vi.spyOn(server.disk, 'openRead').mockRejectedValueOnce(new Error('EIO'))
    const path = '/api/v1/snapshots/content?file=snapshot.7'
    expect(await server.http.request(path, { isSecure: true })).toMatchObject({
      status: 500,
      headers: problem,
    })
    expect(server.logLines.at(-1)).toMatchObject({ stamp: { id: 'admin.request-failed' } })
  })

  it('is off by default', async () => {
    server = await TestServer.start()
    expect(await policyOf('/livez', true)).toBeUndefined()
  })
})
