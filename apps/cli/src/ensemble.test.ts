import type { PassThrough } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Interrupted } from './exit-codes.ts'
import { openSession } from './session/open.ts'
import { ClientTransport } from './session/transport.ts'
import { CliFixture } from './testing/cli-fixture.ts'

/** A member that is an ensemble alone. */
let stage: CliFixture
const ADMIN = ['--auth', 'digest:super:admin']

beforeAll(async () => {
  stage = await CliFixture.startMember()
})
afterAll(() => stage.stop())

const run = (...argv: string[]) => stage.run(argv)

async function succeed(...argv: string[]): Promise<string> {
  const { code, out, err } = await run(...argv, ...ADMIN)
  expect({ code, err: code === 0 ? '' : err }).toEqual({ code: 0, err: '' })
  return out
}

describe('zabra cluster status', () => {
  it('prints the members', async () => {
    let shown = await run('cluster', 'status')
    // The id of an ensemble is final somewhat after its leader serves.
    while (shown.err.includes('without an id')) shown = await run('cluster', 'status')
    const { code, out, err } = shown
    expect([code, err]).toEqual([0, expect.stringMatching(/ensemble 0-[\da-f]{32}\n/)])
    expect(out).toMatch(
      /^id +votes +state +zxid +lag +ready +uptime +disk +certificate +known +problem\n +1 +voter +leader +0x\w+ +0 +yes +\d+ s +\d+ % +- +now\n$/,
    )
    expect(JSON.parse((await run('cluster', 'status', '--json')).out)).toMatchObject({
      failuresLeft: 0,
      members: [{ id: 1, ready: true, source: 'self', sessions: expect.any(Number) as number }],
    })
  })
})

describe('zabra cluster finalize', () => {
  it('explains what it does, and does it with --yes, once for all', async () => {
    expect((await run('cluster', 'status')).err).toContain('feature level 1, not finalized')
    for (const flags of [[], ['--dry-run', '--yes'], ['--level', '1']])
      expect(await succeed('cluster', 'finalize', ...flags)).toMatch(
        /^id +level +obstacle\n +1 +1\n\nwould finalize feature level 1 \(now 0\): no member can go back to Apache ZooKeeper, .*\n--yes does it\.\n$/,
      )
    const refused = await run('cluster', 'finalize', '--level', '2', ...ADMIN)
    expect([refused.code, refused.out]).toEqual([
      9,
      expect.stringContaining('server 1 has feature level 1: install a release of level 2 or later on it'),
    ])
    expect((await run('cluster', 'finalize', '--level', '2', '--yes', ...ADMIN)).err).toContain(
      'install a release of level 2',
    )
    expect((await run('cluster', 'finalize', '--yes')).code).toBe(7)
    for (let times = 0; times < 2; times++)
      expect(await succeed('cluster', 'finalize', '--yes')).toBe('feature level 1 is finalized\n')
    expect(JSON.parse(await succeed('cluster', 'finalize', '--yes', '--json'))).toEqual({
      level: 1,
      finalized: 1,
    })
    expect(await succeed('cluster', 'finalize')).toContain('level 1 is finalized already')
    expect((await run('cluster', 'status')).err).toContain('feature level 1, finalized\n')
  })

  it.each(['0', '65536', 'x'])('refuses the level %s', async (level) => {
    const { code, err } = await run('cluster', 'finalize', '--level', level)
    expect([code, err]).toEqual([2, expect.stringContaining('Expected a whole number from 1 to 65535')])
  })
})

describe('zabra upgrade plan', () => {
  it('prints the order of the members, and what to do with each', async () => {
    const { code, out, err } = await run('upgrade', 'plan')
    expect([code, err]).toEqual([0, expect.stringContaining('fewer than three voters')])
    expect(out).toMatch(/^id +votes +state +version\n +1 +voter +leader +3\.9\.5-zabra-\S+\n\nFor each/)
    expect(JSON.parse((await run('upgrade', 'plan', '--json')).out)).toMatchObject({
      order: [1],
      problems: [],
    })
  })
})

describe('zabra member', () => {
  it('adds, promotes and removes members, and shows first what follows', async () => {
    const table = /^id +role +quorum and election +clients\n +1 +participant/
    expect((await run('member', 'list')).out).toMatch(table)
    const listed = JSON.parse((await run('member', 'list', '--json')).out) as object
    expect(listed).toMatchObject({ members: [{ id: 1 }], voters: [1], quorum: 1 })
    const line = '4=127.0.0.1:1:2:observer;3'
    expect(await succeed('member', 'add', line, '--dry-run')).toMatch(
      /server\.4=.*:observer.*\n1 voters, of which 1 are a quorum: 0 may fail\n$/,
    )
    expect(await succeed('member', 'add', `server.${line}`)).toBe('the members are 1, 4 now\n')
    expect(await succeed('member', 'promote', '4', '-n')).toContain(
      '2 voters, of which 2 are a quorum: 0 may fail',
    )
    const status = await run('cluster', 'status')
    expect([status.code, status.out]).toEqual([
      20,
      expect.stringMatching(/4 +observer +unknown +- +- +- +- +- +- +never +\S/),
    ])
    // A voter that is not there would leave no quorum.
    const refused = await run('member', 'promote', '4', ...ADMIN)
    expect([refused.code, refused.err]).toEqual([
      9,
      expect.stringContaining('Wait until zabra cluster status shows them'),
    ])
    expect(await succeed('member', 'remove', '4', '--json')).toMatch(/"voters":\[1\],"quorum":1\}\n$/)
    expect((await run('member', 'remove', '4', ...ADMIN)).err).toContain(
      'There is no such member. The members are 1.',
    )
  })

  it('says that reconfig in zabra shell is for ensembles of Apache ZooKeeper', async () => {
    expect((await run('member', '--help')).out).toContain('run Apache ZooKeeper, zabra shell has reconfig.')
  })

  it.each([
    [['member', 'promote', '9', ...ADMIN], 3, 'There is no member 9. zabra member list shows them.'],
    [['member', 'promote', '1', ...ADMIN], 9, 'Member 1 is a voter already.'],
    [['member', 'add', 'zk4'], 2, 'Expected a member such as 4=zk4:2888:3888:observer;2181.'],
    [['member', 'remove', 'x'], 2, 'Expected the id of a member'],
    [['member', 'remove', '1', ...ADMIN], 9, 'at least 1 participants, got one with 0.'],
    [['member', 'add', '4=127.0.0.1:1:2:observer;3'], 7, 'The operation needs the role admin'],
    [['transfer'], 7, 'The operation needs the role operate'],
    [['drain'], 7, 'The operation needs the role operate'],
    [['drain', '--wait', 'x'], 2, 'Expected a time from 0 to 3600000 ms'],
    [['session', 'kill', '0x1'], 7, 'The operation needs the role operate'],
    [['session', 'kill', 'first'], 2, 'Expected a session id in hexadecimal'],
  ])('%j is refused with what to do', async (argv, exitCode, message) => {
    const { code, err } = await run(...argv)
    expect([code, err]).toEqual([exitCode, expect.stringContaining(message)])
  })
})

describe('zabra transfer', () => {
  it.each([
    [[], 9, 'No member can take over.'],
    [['--to', '2'], 9, 'Server 2 is no member. Expected one of 1.'],
    [['--to', 'x'], 2, 'Expected a whole number from 0 to 255'],
  ])('%j says why nothing is handed over', async (flags, exitCode, message) => {
    const { code, err } = await run('transfer', ...flags, ...ADMIN)
    expect([code, err]).toEqual([exitCode, expect.stringContaining(message)])
  })

  it('is done where the member leads already', async () => {
    expect(await succeed('transfer', '--to', '1')).toBe('server 1 leads already\n')
  })
})

describe('zabra drain', () => {
  it('waits for the permit, drains the server, and ends that again', async () => {
    expect(await succeed('drain', '--over', '0', '--for', '10s')).toBe(
      'server 1 may be stopped within 10 s\n',
    )
    expect(JSON.parse(await succeed('drain', '--over', '0', '--json'))).toEqual({ id: 1, seconds: 120 })
    expect((await run('cluster', 'status')).out).toContain('draining: accepts no new sessions')
    expect(await succeed('drain', '--end')).toBe('the server accepts sessions again\n')
    expect((await run('cluster', 'status')).code).toBe(0)
  })
})

describe('zabra admin log-level', () => {
  it('prints the levels, and refuses a part that does not exist', async () => {
    expect(await succeed('admin', 'log-level')).toBe('all as the program of the server has it\n')
    const { code, err } = await run('admin', 'log-level', 'debug', '--part', 'elections', ...ADMIN)
    expect([code, err]).toEqual([9, expect.stringContaining('election, file, log')])
    expect((await run('admin', 'log-level', 'loud', ...ADMIN)).code).toBe(2)
    expect((await run('admin', 'log-level', '--for', '1m', ...ADMIN)).code).toBe(2)
  })
})

describe('zabra session and zabra connection', () => {
  it('list, close and end', async () => {
    const options = {
      server: stage.address,
      auth: [],
      timeoutMs: 10_000,
      clientTransport: new ClientTransport(),
    }
    const zk = await openSession(options, new AbortController().signal)
    await zk.create('/held', { data: null, mode: 'ephemeral' })
    const stat = await zk.exists('/held')
    const id = `0x${stat!.ephemeralOwner.toString(16)}`
    expect(await succeed('session', 'list')).toMatch(
      new RegExp(`^session +client +.*\\n(?:.*\\n)*${id} +127`),
    )
    expect(await succeed('connection', 'list', '--json')).toContain(`"id":"${id}"`)
    expect(await succeed('connection', 'close', id)).toBe(`the connection of session ${id} is closed\n`)
    expect(await zk.exists('/held')).toBeDefined()
    expect(await succeed('session', 'kill', id)).toBe(`session ${id} ends\n`)
    expect((await run('session', 'kill', '0x99', ...ADMIN)).err).toContain('The session is unknown.')
    await zk.close().catch(() => {})
  })

  it('kill ends zabra watch with the reason, and the watches of a shell, which goes on', async () => {
    const watching = stage.start(['watch', '/'])
    await watching.stderr.until(/watching/)
    const shell = stage.start(['shell'])
    const type = (line: string): unknown => (shell.stdin as PassThrough).write(`${line}\n`)
    type('addWatch /')
    type('sync /')
    await shell.stdout.until(/Sync is OK/)
    const list = (await succeed('session', 'list', '--json')).trim().split('\n')
    const ids = list.map((line) => (JSON.parse(line) as { id: string }).id)
    const own = `0x${stage.zk.session.id.toString(16)}`
    for (const id of ids.filter((one) => one !== own)) await succeed('session', 'kill', id)
    const { code, err } = await watching.ended
    expect({ code, err }).toEqual({ code: 8, err: expect.stringContaining('. Later changes are not shown.') })
    await shell.stderr.until(/session/i)
    type('sync /')
    await shell.stdout.until(/Not connected/)
    shell.stdin.push(null)
    expect((await shell.ended).code).toBe(8)
  })
})

describe('zabra top', () => {
  const load = async (): Promise<void> => {
    for (let times = 0; times < 20; times++) await stage.zk.exists('/busy')
    await stage.zk.exists('/idle')
  }

  it('prints one reading of the busiest paths into a pipe', async () => {
    await run('top', '--interval', '100')
    await load()
    const { code, out, err } = await run('top', '--interval', '100')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/: \d+ requests in \d+ s, by path\npath +per second[^\n]*\n\/busy +[\d.]+ +[\d.]+ %/)
    expect(out).toContain('/idle')
    const { id } = stage.zk.session
    const sessions = await run('top', '--by', 'session', '--once', '--json', '--interval', '100')
    const { entries } = JSON.parse(sessions.out) as { entries: { key: string }[] }
    expect(entries[0]!.key).toBe(`0x${id.toString(16)}`)
  })

  it('aligns figures to the right, and addresses to the left', async () => {
    await load()
    const { out } = await run('top', '--by', 'address', '--once', '--interval', '100')
    expect(out).toMatch(
      /\naddress +per second +share +bytes per second +mean ms\n127\.0\.0\.1 +[\d.]+ +100\.0 % +/,
    )
  })

  it('draws its table again on a terminal until it is interrupted', async () => {
    const stop = new AbortController()
    const running = stage.start(['top', '--interval', '100', '-n', '1'], { stop, terminal: true })
    await running.stdout.until(/mean ms[^]*mean ms/)
    expect(running.stdout.text.split('\u001B[H\u001B[J').length).toBeGreaterThan(1)
    stop.abort(new Interrupted('SIGINT'))
    expect((await running.ended).code).toBe(130)
  })

  it('refuses an unknown kind', async () => {
    const { code, err } = await run('top', '--by', 'user')
    expect([code, err]).toEqual([2, expect.stringContaining('path, session, address, identity')])
  })
})
