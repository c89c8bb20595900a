import { createServer, type Server } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { CommandRun, CliFixture, type RunResult } from './testing/cli-fixture.ts'

const run = (...argv: string[]): Promise<RunResult> =>
  new CommandRun(['status', ...argv], undefined, { input: '' }).ended

const open: Server[] = []
afterEach(async () => {
  for (const server of open.splice(0)) await new Promise((resolve) => server.close(resolve))
})

/** Something that answers each word as told; undefined stays silent until the client goes. */
async function member(answer: (word: string) => string | undefined): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (bytes) => {
      const text = answer(bytes.toString())
      if (text !== undefined) socket.end(text)
    })
  })
  open.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `127.0.0.1:${(server.address() as { port: number }).port}`
}

const srvr = (mode: string) =>
  `Zookeeper version: 3.9.3-abc, built on 2024\nLatency min/avg/max: 0/0.5/7\nReceived: 1\nSent: 1\nConnections: 4\nOutstanding: 2\nZxid: 0x100000007\nMode: ${mode}\nNode count: 9\n`
const quorum =
  (mode: string, figures = '') =>
  (word: string) =>
    word === 'srvr' ? srvr(mode) : `zk_version\t3.9.3\nzk_server_state\t${mode}\n${figures}`

describe('status', () => {
  it('shows a standalone server', async () => {
    const stage = await CliFixture.start()
    try {
      const { code, out } = await run(stage.address)
      expect(code).toBe(0)
      expect(out).toMatch(/^server +mode +zxid +connections +queued +avg\/max ms +nodes +version +health\n/)
      expect(out).toMatch(/standalone +0x1 .* ok\n$/)
    } finally {
      await stage.stop()
    }
  })

  it('shows every member of an ensemble, and a leader with a missing follower', async () => {
    const leader = await member(quorum('leader', 'zk_quorum_size\t3\nzk_synced_followers\t1\n'))
    const follower = await member(quorum('follower'))
    const { code, out } = await run(leader, follower)
    expect(code).toBe(0)
    expect(out).toMatch(/leader +0x100000007 +4 +2 +0.5\/7 +9 +3.9.3-abc +ok, but 1 of 3 voters not synced/)
    expect(out).toMatch(/follower .* ok\n/)
  })

  it('accepts members separated by commas, as in connect strings', async () => {
    const [leader, follower] = [await member(quorum('leader')), await member(quorum('follower'))]
    const { code, out } = await run(`${leader},${follower}`)
    expect([code, out.split('\n').length]).toEqual([0, 4])
  })

  it('refuses WebSocket addresses, where four-letter words do not work', async () => {
    expect(await run('ws://localhost:1/')).toMatchObject({
      code: 2,
      err: expect.stringContaining('other port'),
    })
  })

  it('queries the members of --server when none is named', async () => {
    const follower = await member(quorum('leader'))
    expect((await run('--server', `${follower}/root`)).out).toContain('leader')
  })

  it('exits with 20 when a member is down, and still shows the others', async () => {
    const leader = await member(quorum('leader'))
    const { code, out, err } = await run(leader, '127.0.0.1:1')
    expect(code).toBe(20)
    expect(out).toMatch(/127\.0\.0\.1:1 .*down: Cannot connect to 127\.0\.0\.1:1 \(ECONNREFUSED\)/)
    expect(err).toBe('zabra: 1 of 2 members are not serving: 127.0.0.1:1.\n')
  })

  it('exits with 20 for a member without quorum and for one that does not reply', async () => {
    const idle = await member(() => 'This ZooKeeper instance is not currently serving requests\n')
    expect(await run(idle)).toMatchObject({ code: 20, out: expect.stringContaining('no quorum') })
    const hung = await member(() => undefined)
    expect(await run(hung, '--timeout', '100')).toMatchObject({
      code: 20,
      out: expect.stringMatching(/did not answer \w+ within 100 ms/),
    })
    const other = await member(() => 'HTTP/1.1 400 Bad Request\r\n\r\n')
    expect(await run(other)).toMatchObject({
      code: 20,
      out: expect.stringContaining('not a ZooKeeper server'),
    })
  })

  it('exits with 20 for two leaders and for none', async () => {
    const leaders = [await member(quorum('leader')), await member(quorum('leader'))]
    expect(await run(...leaders)).toMatchObject({
      code: 20,
      err: expect.stringContaining('claim to be the leader'),
    })
    const followers = [await member(quorum('follower')), await member(quorum('follower'))]
    expect(await run(...followers)).toMatchObject({ code: 20, err: expect.stringContaining('None of these') })
  })

  it('exits with 20 for a member that refuses writes, and says which disk is full', async () => {
    const reply = quorum('leader', 'zk_log_writable\t0\n')
    const full = await member((word) =>
      word === 'conf' ? 'clientPort=1\ndataLogDir=/srv/zk/log\n' : reply(word),
    )
    const { code, out, err } = await run(full)
    expect(code).toBe(20)
    expect(out).toContain('refuses writes: the disk of /srv/zk/log is full')
    expect(err).toContain(
      `1 of 1 member refuses writes: ${full}. Free space on the disk of its transaction log`,
    )
  })

  it('is what a command names whose session a server refuses', async () => {
    const at = await member(() => '')
    const { code, err } = await new CommandRun(['get', '/app'], at, { input: '' }).ended
    expect(code).toBe(8)
    expect(err).toContain(`closed the connection during the handshake. It refuses new sessions`)
    expect(err).toContain('zabra status shows whether its disk is full')
  })

  it('names the words that are not on the whitelist', async () => {
    const stage = await CliFixture.start({ fourLetterWords: ['srvr'] })
    try {
      const { code, out, err } = await run(stage.address)
      expect(code).toBe(0)
      expect(out).toContain('standalone')
      expect(err).toContain('mntr not on the whitelist. Add it to 4lw.commands.whitelist there to see more')
    } finally {
      await stage.stop()
    }
    const closed = await CliFixture.start({ fourLetterWords: [] })
    try {
      const { out, err } = await run(closed.address)
      expect(out).toContain('unknown: no word is whitelisted')
      expect(err).toContain('srvr and mntr not on the whitelist')
    } finally {
      await closed.stop()
    }
  })

  it('prints one JSON object per member with --json', async () => {
    const leader = await member(quorum('leader'))
    expect(JSON.parse((await run(leader, '--json')).out)).toMatchObject({
      server: leader,
      isDown: false,
      mode: 'leader',
      health: 'ok',
      zxid: '0x100000007',
      connections: 4,
      outstanding: 2,
      averageLatencyMs: 0.5,
      maxLatencyMs: 7,
      nodes: 9,
    })
  })
})
