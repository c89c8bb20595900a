import { cpSync } from 'node:fs'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { part, ttlBody, versionBody } from './differential/requests.ts'
import { describeWith, missingRequirements } from './harness/requirements.ts'
import { bytes, frame } from './harness/bytes.ts'
import { Client, connectRequest, createBody, multiBody, RawConnection } from './harness/client.ts'
import { dumpTree } from './harness/dump.ts'
import { op } from './harness/opcodes.ts'
import { countFromEnv, Prng, seedFromEnv } from './harness/prng.ts'
import { serverUnderTest, reference, scratch, Server } from './harness/servers.ts'
import { handshake, fuzzedFrame } from './fuzz/frames.ts'

const frames = countFromEnv('ZABRA_FUZZ_FRAMES', 30_000)
const seed = seedFromEnv()
const replay = `replay with: ZABRA_SEED=${seed} ZABRA_FUZZ_FRAMES=${frames} npx vitest run src/fuzz.test.ts`
const config = {
  extendedTypesEnabled: 'true',
  tickTime: 500,
  'DigestAuthenticationProvider.superDigest': 'super:lK75jTNcA+U9vtVEw5vB51mj/w4=',
}

// Apache ZooKeeper exits or hangs on these requests, so they are sent to Zabra only.
describe.skipIf(serverUnderTest !== 'zabra')('requests that crash or hang Apache ZooKeeper', () => {
  let server: Server
  let client: Client

  beforeAll(async () => {
    server = await Server.start({ kind: serverUnderTest, config })
    client = await Client.connect(server.port)
    await client.create('/h')
  })

  afterAll(async () => server[Symbol.asyncDispose]())

  const refusedThenClosed = async (type: number, body: Buffer): Promise<void> => {
    const attacker = await RawConnection.open(server.port)
    attacker.write(frame(connectRequest()))
    await attacker.next()
    attacker.write(frame(bytes().int(9).int(type).raw(body).done()))
    const reply = await attacker.next()
    expect(reply?.toString('hex')).toBe('00000009fffffffffffffffffffffffa')
    await attacker.closed
  }

  it.each([0, 1, 2, 3, 4])(
    'refuses createTTL with flags %i and a negative TTL as bad arguments',
    async (flags) => {
      expect((await client.request(op.createTTL, ttlBody('/h/ttl', flags, -1n))).err).toBe(-8)
      expect((await client.request(op.createTTL, ttlBody('/h/ttl', flags, -(2n ** 63n)))).err).toBe(-8)
    },
  )

  it.each([0, 1, 2, 3, 4, 5, 6])(
    'survives a multi with createTTL of flags %i and a negative TTL',
    async (flags) => {
      await client.request(op.multi, multiBody([part.ttl(`/h/multi-ttl${flags}`, flags, -1n)]))
      expect(await client.exists('/h')).toBeDefined()
    },
  )

  it('survives a quota on the root', async () => {
    const reply = await client.request(
      op.create,
      createBody('/zookeeper/quota/zookeeper_limits', 'count=1,bytes=1'),
    )
    expect([0, -8]).toContain(reply.err)
    await client.create('/h/after-root-limits')
  })

  it.each([null, '', 'nonsense', 'count=x,bytes=y', 'count=99999999999999999999,bytes=', '=,=', 'count=1'])(
    'survives the quota stats %j',
    async (text) => {
      const name = `/h/q${Buffer.from(text ?? 'null').toString('hex')}`
      await client.create(name)
      await client.create('/zookeeper/quota/h').catch(() => undefined)
      await client.create(`/zookeeper/quota${name}`)
      await client.create(`/zookeeper/quota${name}/zookeeper_limits`, 'count=10,bytes=10')
      await client.create(`/zookeeper/quota${name}/zookeeper_stats`, 'count=0,bytes=0')
      await client.set(`/zookeeper/quota${name}/zookeeper_stats`, text)
      await client.create(`${name}/child`, 'abc')
      await client.set(`${name}/child`, 'abcdef')
      await client.delete(`${name}/child`)
    },
  )

  it('refuses a check outside of a multi and closes the connection', () =>
    refusedThenClosed(op.check, versionBody('/h', -1)))
  it('refuses deleteContainer from a client and closes the connection', async () => {
    await client.create('/h/ordinary')
    await refusedThenClosed(op.deleteContainer, bytes().str('/h/ordinary').done())
    expect(await client.exists('/h/ordinary')).toBeDefined()
  })
  it('refuses createSession from a client and closes the connection', () =>
    refusedThenClosed(op.createSession, bytes().int(5000).done()))

  it('keeps a connection when another client tries to resume its session with a wrong password', async () => {
    const { id } = client.session
    await expect(
      Client.connect(server.port, { resume: { id, password: Buffer.alloc(16, 1) } }),
    ).rejects.toThrow()
    expect(await client.exists('/h')).toBeDefined()
    expect(client.connection.isClosed).toBe(false)
  })

  it('allocates no memory for false counts and lengths', async () => {
    const before = server.residentBytes
    for (let times = 0; times < 200; times++) {
      await client.request(op.setWatches, bytes().long(0).int(2147483647).done())
      await client.request(op.create, bytes().str('/h/x').buffer('').int(2147483647).done())
      const attacker = await RawConnection.open(server.port)
      attacker.write(frame(connectRequest({ timeoutMs: 1000 })))
      await attacker.next()
      attacker.write(bytes().int(1_048_575).raw(Buffer.alloc(10)).done())
      attacker.destroy()
    }
    expect(server.residentBytes - before).toBeLessThan(100 * 1024 * 1024)
  })

  it('restarts on the log of these requests with the same tree', async () => {
    const before = await dumpTree(client)
    await server.kill()
    await server.start()
    const again = await Client.connect(server.port)
    expect(await dumpTree(again)).toEqual(before)
    await again.close()
  })
})

describeWith(serverUnderTest === 'zabra' ? [] : ['apache'], 'random and mutated bytes', () => {
  it(
    `of ${frames} frames leave a server that serves, with flat memory and a readable log`,
    { timeout: 60_000 + frames },
    async () => {
      console.log(`fuzz: seed ${seed}, ${frames} frames`)
      await using server = await Server.start({ kind: serverUnderTest, config })
      const probe = await Client.connect(server.port, { timeoutMs: 10_000 })
      await probe.addAuth('digest', 'super:secret')
      await probe.create('/probe', '0')
      await probe.create('/f')
      let done = false
      const probing = keepProbing(server, probe, () => done)
      const prng = new Prng(seed)
      const resident: number[] = []
      let sent = 0
      const attacker = async (): Promise<void> => {
        while (sent < frames) {
          const own = new Prng(prng.int(2 ** 31))
          const number = Math.min(40, frames - sent)
          sent += number
          await attack(server, own, number).catch((error: Error) => {
            throw new Error(
              `${error.message}; connection seed ${own.seed}, ${number} frames; ${replay}\n${server.output.slice(-2000)}`,
            )
          })
          if (sent % 5000 < 40) {
            resident.push(server.residentBytes)
            await sweep(probe)
          }
        }
      }
      const attacking = Promise.all(Array.from({ length: 6 }, attacker)).finally(() => (done = true))
      const [{ probes, slowest }] = await Promise.all([probing, attacking])
      await sweep(probe)

      expect(server.isRunning, replay).toBe(true)
      expect(probes, replay).toBeGreaterThan(0)
      const mebibytes = resident.map((size) => Math.round(size / 2 ** 20))
      console.log(
        `fuzz: ${probes} probes, slowest ${Math.round(slowest)} ms, resident MiB ${sampleOf(mebibytes).join(' ')}`,
      )
      expect(slowest, replay).toBeLessThan(3000)
      const half = mebibytes.length >> 1
      const [early, late] = [Math.max(...mebibytes.slice(0, half + 1)), Math.max(...mebibytes.slice(half))]
      expect(late, `resident memory grew from ${early} to ${late} MiB; ${replay}`).toBeLessThan(early + 96)

      const before = await dumpTree(probe)
      await server.kill()
      const copy = scratch('fuzzed')
      cpSync(server.dataDir, copy, { recursive: true })
      await server.start()
      const again = await Client.connect(server.port)
      await again.addAuth('digest', 'super:secret')
      expect(withoutEphemerals(await dumpTree(again)), replay).toEqual(withoutEphemerals(before))
      await again.close()
      if (missingRequirements('apache') !== undefined || serverUnderTest !== 'zabra') return
      await using apache = await Server.start({ kind: reference, config, dataDir: copy })
      const reader = await Client.connect(apache.port)
      await reader.addAuth('digest', 'super:secret')
      expect(withoutEphemerals(await dumpTree(reader)), `read by Apache ZooKeeper; ${replay}`).toEqual(
        withoutEphemerals(before),
      )
      await reader.close()
    },
  )
})

const sampleOf = (values: readonly number[]): readonly number[] =>
  values.filter((_, index) => index % Math.ceil(values.length / 12) === 0)

/** Leaves out ephemeral nodes and their parents: sessions of the attack may expire between two reads. */
function withoutEphemerals(dump: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(dump).filter(
      ([path, text]) => path !== '/' && path !== '/f' && text.includes('"ephemeralOwner":"0"'),
    ),
  )
}

/** Writes and reads continuously and records the longest latency. */
async function keepProbing(
  server: Server,
  probe: Client,
  done: () => boolean,
): Promise<{ probes: number; slowest: number }> {
  let [probes, slowest] = [0, 0]
  while (!done()) {
    const began = performance.now()
    await probe.set('/probe', String(++probes))
    const { data } = await probe.get('/probe')
    if (data?.toString() !== String(probes))
      throw new Error(`The probe wrote ${probes} and read ${data?.toString()}; ${replay}`)
    slowest = Math.max(slowest, performance.now() - began)
    if (!server.isRunning) throw new Error(`The server ended; ${replay}\n${server.output}`)
    await new Promise((wake) => setTimeout(wake, 5))
  }
  return { probes, slowest }
}

/** Deletes the nodes of the attack, so that growth of the tree does not look like a leak. */
async function sweep(probe: Client): Promise<void> {
  const remove = async (path: string): Promise<void> => {
    for (const child of await probe.children(path).catch(() => []))
      await remove(path === '/' ? `/${child}` : `${path}/${child}`)
    if (path !== '/f') await probe.delete(path).catch(() => undefined)
  }
  for (const child of await probe.children('/')) {
    if (!['zookeeper', 'probe'].includes(child)) await remove(`/${child}`)
  }
  for (const child of await probe.children('/zookeeper/quota')) await remove(`/zookeeper/quota/${child}`)
}

/** Sends fuzzed frames over one connection and ends it. Rejects when the server does not close it within a minute. */
function attack(server: Server, prng: Prng, number: number): Promise<void> {
  const whole = Buffer.concat([handshake(prng), ...Array.from({ length: number }, () => fuzzedFrame(prng))])
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: server.port }, () => {
      // In random chunks, so that frames are split anywhere.
      let at = 0
      while (at < whole.length) {
        const next = at + 1 + prng.int(4000)
        socket.write(whole.subarray(at, next))
        at = next
      }
      socket.end()
    })
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error('the server did not close the connection within a minute'))
    }, 60_000)
    socket.resume()
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') reject(new Error('the server no longer listens'))
    })
    socket.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
