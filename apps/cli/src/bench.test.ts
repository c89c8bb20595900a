import { spawn } from 'node:child_process'
import { connect, createServer, type Socket } from 'node:net'
import { OpCode } from '@zabra/protocol'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CommandRun, setupStage, stage, type RunResult } from './testing/cli-fixture.ts'

interface Told {
  readonly root: string
  readonly figures: readonly { readonly name: string; readonly operations: number; readonly max: number }[]
}

setupStage({ maxClientCnxns: 0 })

const main = new URL('../dist/main.js', import.meta.url).pathname
const small = ['-c', '3', '-d', '4', '-s', '1', '-n', '20', '--size', '10']
const bench = (mode: string, ...more: string[]): Promise<RunResult> =>
  stage.run(['bench', '-m', mode, ...small, ...more])
const children = async (): Promise<string[]> => (await stage.zk.getChildren('/')).children

describe('bench', () => {
  it.each(['get', 'set', 'create', 'mixed', 'watch', 'connect'])(
    'measures a load of %s and removes its nodes',
    async (mode) => {
      const { code, out, err } = await bench(mode, '--json')
      expect({ code, err }).toEqual({ code: 0, err: '' })
      const { figures } = JSON.parse(out) as Told
      expect(figures).toHaveLength(1)
      expect(figures[0]!.operations).toBeGreaterThan(0)
      expect(figures[0]!.max).toBeGreaterThan(0)
      expect(await children()).toEqual(['zookeeper'])
    },
  )

  it('sends at the given rate and measures latency from when a request was due', async () => {
    const began = performance.now()
    const { figures } = JSON.parse((await bench('get', '--json', '-r', '600')).out) as Told
    const seconds = (performance.now() - began) / 1000
    expect(figures[0]!.operations).toBeGreaterThan(0)
    expect(figures[0]!.operations).toBeLessThan(600 * seconds)
  })

  it('holds sessions and watches, and reports when they are established', async () => {
    const { code, out, err } = await bench('hold', '--json', '-w', '7')
    expect(code).toBe(0)
    expect(err).toBe('zabra: 3 sessions are open\nzabra: 21 watches are set\n')
    expect((JSON.parse(out) as Told).figures[0]!.operations).toBe(21)
  })

  it('runs all phases of the classic load, with a notification for every deletion', async () => {
    const { figures } = JSON.parse((await bench('classic', '--json')).out) as Told
    expect(figures.map(({ name, operations }) => [name, operations])).toEqual([
      ['create', 60],
      ['set', 60],
      ['get', 60],
      ['delete', 60],
      ['create ephemeral', 60],
      ['watch', 300],
      ['delete watched', 60],
      ['all', 660],
    ])
  })

  it('prints a table and a latency histogram', async () => {
    const { out } = await bench('get')
    expect(out).toMatch(
      /^ +operations +seconds +per second +mean +p50 +p95 +p99 +p99\.9 +max\nget +[\d,]+ +[1-9]\d*\.\d\d/,
    )
    expect(out).toMatch(/ and more +\d+\.\d % {2}#+\n/)
  })

  it.each([
    ['classic', 3, { name: 'all', operations: 660 }],
    // More processes than watchers: one of them has only the connection that writes.
    ['watch', 3, { name: 'write until 2 watchers are notified' }],
  ])('distributes a load of %s over %i processes', async (mode, processes, figures) => {
    const args = ['bench', stage.address, '-m', mode, ...small, '-p', String(processes), '--json']
    const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
    let out = ''
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
    expect(await new Promise((resolve) => child.once('close', resolve))).toBe(0)
    const told = (JSON.parse(out) as Told).figures
    expect(told.at(-1)).toMatchObject(figures)
    expect(told.at(-1)!.operations).toBeGreaterThan(0)
    expect(await children()).toEqual(['zookeeper'])
  })

  it('removes its nodes when it is interrupted', async () => {
    const stop = new AbortController()
    const running = stage.start(['bench', '-m', 'create', '-s', '60', '-c', '2'], { stop, terminal: true })
    await running.stderr.until(/per second, [1-9]/)
    stop.abort(new Error('enough'))
    expect((await running.ended).code).not.toBe(0)
    expect(await children()).toEqual(['zookeeper'])
  })

  it('keeps its nodes with --keep, below --root', async () => {
    await stage.zk.create('/here', { data: null })
    const { err } = await bench('create', '--root', '/here', '--keep')
    const [, kept = ''] = /are below (\/here\/zabra-bench-\w+)/.exec(err) ?? []
    expect((await stage.zk.getChildren(kept)).children.length).toBeGreaterThan(3)
    expect((await stage.run(['deleteall', '/here'])).code).toBe(0)
  })

  it('refuses impossible options with an explanation', async () => {
    expect(await bench('watch', '-c', '1')).toMatchObject({
      code: 2,
      err: expect.stringContaining('2 connections'),
    })
    expect(await bench('fast')).toMatchObject({ code: 2, err: expect.stringContaining('Allowed choices') })
    expect(await stage.run(['bench', `${stage.address}/root`])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--root'),
    })
    expect(await bench('get', '--root', '/missing')).toMatchObject({ code: 3 })
  })

  it('fails with the reason when a server closes a connection', async () => {
    const proxy = await Proxy.start(stage.server.addresses.client.port)
    // The first connection is that of the session which makes the nodes.
    proxy.refusesFrom = 2
    const { code, err } = await new CommandRun(['bench', ...small], proxy.address, { input: '' }).ended
    expect(code).not.toBe(0)
    expect(err).toContain('closed a connection before the session was established')
    expect(err).toContain('maxClientCnxns')
    expect(await children()).toEqual(['zookeeper'])
    await proxy.close()
  })

  it('fails with the reason when a server closes the connections of watchers during a round', async () => {
    const proxy = await Proxy.start(stage.server.addresses.client.port)
    proxy.sees = (type) => {
      if (type !== OpCode.setData) return true
      proxy.hangUp(OpCode.exists)
      return false
    }
    const { code, err } = await new CommandRun(['bench', '-m', 'watch', ...small], proxy.address, {
      input: '',
    }).ended
    expect(code).not.toBe(0)
    expect(err).toContain('closed a connection during the load')
    expect(await children()).toEqual(['zookeeper'])
    await proxy.close()
  })

  it('terminates all workers when one fails while the others wait at the barrier', async () => {
    const proxy = await Proxy.start(stage.server.addresses.client.port)
    // Behind the two that make nodes, the last of three to come.
    proxy.refusesFrom = 5
    const args = [main, 'bench', proxy.address, '-m', 'watch', ...small, '-p', '3']
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    let err = ''
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
    // All of them write to it: it is closed when the last one has ended.
    expect(await new Promise((resolve) => child.once('close', resolve))).not.toBe(0)
    expect(err).toContain('closed a connection before the session was established')
    expect(await children()).toEqual(['zookeeper'])
    await proxy.close()
  })

  it('ends the workers of a load whose coordinator is killed', async () => {
    const proxy = await Proxy.start(stage.server.addresses.client.port)
    const args = [main, 'bench', proxy.address, '-m', 'watch', ...small, '-s', '60', '-p', '3']
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    child.stderr.resume()
    await new Promise<void>((resolve) => {
      proxy.sees = (type) => (type === OpCode.setData && resolve(), true)
    })
    child.kill('SIGKILL')
    await new Promise((resolve) => child.once('close', resolve))
    await stage.run([
      'deleteall',
      ...(await children()).filter((name) => name !== 'zookeeper').map((name) => `/${name}`),
    ])
    await proxy.close()
  })
})

/** Stands between clients and a server. */
class Proxy {
  /** Connections from this one on are closed at once; the first is 1. */
  refusesFrom = Infinity
  /** Receives the op code of each request; returning false drops the request. */
  sees: (type: number) => boolean = () => true
  readonly #sockets = new Set<Socket>()
  readonly #last = new Map<Socket, number>()
  readonly #server = createServer((socket) => this.#accept(socket))
  readonly #port: number

  private constructor(port: number) {
    this.#port = port
  }

  static async start(port: number): Promise<Proxy> {
    const proxy = new Proxy(port)
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as { port: number }).port}`
  }

  /** Closes the connections whose last request was of this type. */
  hangUp(type: number): void {
    for (const [socket, last] of this.#last) if (last === type) socket.destroy()
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => {})
    if (this.#sockets.size >= this.refusesFrom) return void socket.destroy()
    const other = connect({ host: '127.0.0.1', port: this.#port }).on('error', () => {})
    other.pipe(socket)
    socket.on('close', () => other.destroy())
    let isGreeted = false
    socket.on('data', (chunk: Buffer) => {
      const type = isGreeted ? chunk.readInt32BE(8) : OpCode.createSession
      isGreeted = true
      this.#last.set(socket, type)
      if (this.sees(type)) other.write(chunk)
    })
    socket.on('end', () => other.end())
  }
}
