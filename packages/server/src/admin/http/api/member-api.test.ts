import { afterEach, describe, expect, it } from 'vitest'
import { Ensemble } from '../../../ensemble/testing/ensemble.ts'
import type { ServerSettings } from '../../../settings/index.ts'
import { TestServer } from '../../../testing/test-server.ts'

interface Members {
  readonly version: string
  readonly members: readonly { readonly id: number; readonly role: string; readonly member: string }[]
  readonly voters: readonly number[]
  readonly quorum: number | null
}

interface Answer {
  readonly status: number
  readonly text: string
}

let ensemble: Ensemble

const ADMIN = { adminRoleAdmin: ['ip:127.0.0.1'] } as const
const member = (id: number, role = 'participant'): string =>
  `${id}=127.0.0.1:${2000 + id}:${3000 + id}:${role};127.0.0.1:${4000 + id}`

async function start(
  size = 3,
  settings: Partial<ServerSettings> & { observers?: readonly number[] } = {},
): Promise<Ensemble> {
  ensemble = await Ensemble.start(size, { reconfigEnabled: true, ...ADMIN, ...settings })
  return ensemble
}

async function ask(id: number, method: string, path = '', body?: object): Promise<Answer> {
  const request = ensemble.member(id).http.request(`/api/v1/members${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  let isAnswered = false
  void request.finally(() => (isAnswered = true))
  await ensemble.until('the answer', () => isAnswered)
  return request
}

async function members(id: number, method = 'GET', path = '', body?: object): Promise<Members> {
  const { status, text } = await ask(id, method, path, body)
  expect([status, text]).toEqual([200, expect.stringContaining('"members"')])
  return JSON.parse(text) as Members
}

/** The ids of followers and of the leader. */
function roles(): { readonly leader: number; readonly followers: readonly number[] } {
  const leader = ensemble.leader!
  return { leader, followers: [...ensemble.members.keys()].filter((id) => id !== leader) }
}

/** Sessions that the members know. */
const sessions = (): number[] => ensemble.running.map((server) => server.stats().sessions)

const lines = (text: string): string[] => ensemble.lines.filter((line) => line.includes(text))

afterEach(async () => {
  for (const each of ensemble?.members.values() ?? []) if (each.server !== undefined) await each.crash()
})

describe('/api/v1/members', () => {
  it('lists the members in force, with their quorum, on every member', async () => {
    await start(4, { observers: [4] })
    for (const id of [1, 2, 3, 4]) {
      const { version, members: all, voters, quorum } = await members(id)
      expect({ version, voters, quorum }).toEqual({ version: '0x100000000', voters: [1, 2, 3], quorum: 2 })
      expect(all.map((one) => [one.id, one.role])).toEqual([
        [1, 'participant'],
        [2, 'participant'],
        [3, 'participant'],
        [4, 'observer'],
      ])
      expect(all[3]).toEqual({
        id: 4,
        role: 'observer',
        addresses: [{ host: '127.0.0.1', quorumPort: 2004, electionPort: 3004 }],
        client: null,
        member: '4=127.0.0.1:2004:3004:observer',
      })
    }
  })

  it.each<[Partial<ServerSettings>]>([
    [{}],
    [{ localSessionsEnabled: true, localSessionsUpgradingEnabled: true }],
    [{ observerMasterPort: 2500 }],
  ])(
    'adds, promotes and removes a member, through a follower, an observer and the leader, with %j',
    async (settings) => {
      await start(4, { observers: [4], ...settings })
      const { leader, followers } = roles()
      await members(followers[0]!, 'POST', '', { member: member(5, 'observer') })
      expect((await members(4)).members.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5])
      const promoted = await members(4, 'POST', '', { member: member(4) })
      expect(promoted).toMatchObject({ voters: [1, 2, 3, 4], quorum: 3 })
      await ensemble.allServe()
      expect(await members(leader)).toEqual(promoted)
      expect((await members(leader, 'DELETE', '/5')).members.map(({ id }) => id)).toEqual([1, 2, 3, 4])
      await ensemble.until('its end on all members', () => sessions().every((count) => count === 0))
    },
  )

  it('removes the leader, after which another member leads', async () => {
    await start()
    const { leader, followers } = roles()
    const { voters, quorum } = await members(leader, 'DELETE', `/${leader}`)
    expect({ voters, quorum }).toEqual({ voters: followers, quorum: 2 })
    await ensemble.until('another leader', () => ensemble.leader !== undefined && ensemble.leader !== leader)
  })

  it('says what would follow, and changes nothing', async () => {
    await start()
    const before = await members(1)
    const added = await members(2, 'POST', '', { member: member(4), dryRun: true, version: before.version })
    expect(added).toMatchObject({ version: before.version, voters: [1, 2, 3, 4], quorum: 3 })
    expect(await members(1, 'DELETE', '/3?dryRun=true')).toMatchObject({ voters: [1, 2], quorum: 2 })
    await ensemble.advance(1000)
    for (const id of [1, 2, 3]) expect(await members(id)).toEqual(before)
  })

  it.each([
    '4=127.0.0.1:2004:3004;4004',
    '4=127.0.0.1:2004:3004:observer;127.0.0.1:4004',
    '4=127.0.0.1:2004:3004|127.0.0.2:2004:3004:observer;4004',
    '4=[::1]:2004:3004:observer;[::1]:4004',
    '3=127.0.0.1:2003:3003:observer;4003',
  ])('says what the change to %s then makes of the members', async (text) => {
    await start()
    const { version: _, ...foreseen } = await members(1, 'POST', '', { member: text, dryRun: true })
    expect(await members(1, 'POST', '', { member: text })).toMatchObject(foreseen)
  })

  it('changes nothing where the members have another version than the given one', async () => {
    await start()
    const { version } = await members(1)
    const joining = { member: member(4, 'observer') }
    for (const dryRun of [true, false]) {
      expect(await ask(2, 'POST', '', { ...joining, version: '0x5', dryRun })).toMatchObject({ status: 409 })
      const { status, text } = await ask(2, 'DELETE', `/3?version=0x5&dryRun=${dryRun}`)
      expect([status, text]).toEqual([409, expect.stringContaining('The members have another version')])
    }
    const after = await members(2, 'POST', '', { ...joining, version })
    expect(after.version).not.toBe(version)
    expect((await ask(1, 'DELETE', `/4?version=${version}`)).status).toBe(409)
    expect((await members(1, 'DELETE', `/4?version=${after.version}`)).members).toHaveLength(3)
  })

  it('refuses what it does not understand, and says what it expects', async () => {
    await start()
    for (const body of [
      {},
      { member: 4 },
      { member: 'zk4' },
      { member: `${member(4)},server.${member(5)}` },
      { member: `${member(4)}\nserver.${member(5)}` },
      { member: `4=${'x'.repeat(2000)}` },
      { member: member(4), version: '5' },
      { member: member(4), version: '0xffffffffffffffff' },
      { member: member(4), dryRun: 'yes' },
    ])
      expect([body, await ask(2, 'POST', '', body)]).toEqual([
        body,
        expect.objectContaining({
          status: 400,
          text: expect.stringContaining('Expected {\\"member\\": \\"4=zk4') as unknown,
        }),
      ])
    for (const [bad, reason] of [
      ['4=zk4', 'expected host:quorumPort:electionPort'],
      ['4=zk4:1:2', 'Expected three ports for server.4'],
      [`4=127.0.0.1:2001:3004;127.0.0.1:4004`, 'Expected different addresses for all servers'],
    ] as const) {
      const { status, text } = await ask(2, 'POST', '', { member: bad })
      expect([status, text]).toEqual([400, expect.stringContaining(reason)])
    }
    for (const path of ['/3?version=3', '/3?dryRun=1', '/3?version=0xffffffffffffffff'])
      expect([path, (await ask(2, 'DELETE', path)).status]).toEqual([path, 400])
    expect(await ask(2, 'DELETE', '/9')).toMatchObject({
      status: 404,
      text: expect.stringContaining('The members are 1, 2, 3.') as unknown,
    })
    expect((await ask(2, 'DELETE', '/x')).status).toBe(404)
    await members(1, 'DELETE', '/3')
    await ensemble.until('a leader', () => ensemble.leader !== undefined)
    await ensemble.allServe()
    const { status, text } = await ask(1, 'DELETE', '/2')
    expect([status, text]).toEqual([409, expect.stringContaining('at least 2 participants')])
  })

  it('refuses voters that are no quorum yet, and says what to wait for', async () => {
    await start(1, { standaloneEnabled: false })
    const { status, text } = await ask(1, 'POST', '', { member: member(2) })
    expect([status, text]).toEqual([
      409,
      expect.stringContaining('Wait until zabra cluster status shows them'),
    ])
    expect((await members(1)).members).toHaveLength(1)
  })

  it('has the second of two changes at a time refused', async () => {
    await start()
    const { leader, followers } = roles()
    let flush = (): void => {}
    const flushed = new Promise<void>((resolve) => (flush = resolve))
    for (const id of followers) ensemble.member(id).disk.beforeWrite = () => flushed
    const first = ask(leader, 'POST', '', { member: member(4, 'observer') })
    await ensemble.untilIdle()
    const second = ask(followers[0]!, 'POST', '', { member: member(5, 'observer') })
    await ensemble.advance(100)
    flush()
    expect((await first).status).toBe(200)
    const { status, text } = await second
    expect([status, text]).toEqual([
      409,
      expect.stringContaining('Another change of the members is under way'),
    ])
    expect((await members(leader)).members.map(({ id }) => id)).toEqual([1, 2, 3, 4])
  })

  it('needs reconfigEnabled, here and at the leader', async () => {
    await start(3, { reconfigEnabled: false })
    const { leader, followers } = roles()
    const disabled = async (id: number, where: string): Promise<void> => {
      const { status, text } = await ask(id, 'DELETE', '/1')
      expect([status, text]).toEqual([409, expect.stringContaining(`reconfigEnabled=true on all members`)])
      expect(text).toContain(`it is false on ${where}.`)
    }
    await disabled(leader, 'this server')
    const [other] = followers
    const { settings } = ensemble.member(other!)
    ensemble.member(other!).settings = Object.freeze({ ...settings, reconfigEnabled: true })
    await ensemble.restart(other!)
    await disabled(other!, 'the leader')
  })

  it('a standalone server has no members', async () => {
    const server = await TestServer.start({ ...ADMIN, reconfigEnabled: true })
    for (const [method, path] of [
      ['GET', ''],
      ['POST', ''],
      ['DELETE', '/1'],
    ] as const) {
      const body = method === 'POST' ? { body: JSON.stringify({ member: member(2) }) } : {}
      const { status, text } = await server.http.request(`/api/v1/members${path}`, { method, ...body })
      expect([status, text]).toEqual([409, expect.stringContaining('The server is a standalone one')])
    }
    await server.stop()
  })

  it('is changed by the role admin alone, and every attempt is audited with its caller', async () => {
    await start(3, {
      adminRoleAdmin: ['sasl:ada'],
      adminRoleOperate: ['sasl:bob'],
      adminAnonymous: ['health'],
      saslUsers: { ada: 'pass', bob: 'pass' },
      auditEnabled: true,
      auditEvents: ['writes', 'admin'],
    })
    const as = async (user: string, method: string, path = '', body?: object): Promise<number> => {
      const request = ensemble.member(2).http.request(`/api/v1/members${path}`, {
        method,
        headers: { authorization: `Basic ${btoa(`${user}:pass`)}` },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      let isAnswered = false
      void request.finally(() => (isAnswered = true))
      await ensemble.until('the answer', () => isAnswered)
      return (await request).status
    }
    const joining = { member: member(4, 'observer') }
    expect(await as('bob', 'GET')).toBe(200)
    expect(await as('bob', 'POST', '', joining)).toBe(403)
    expect(await as('bob', 'DELETE', '/1')).toBe(403)
    expect(await as('ada', 'POST', '', joining)).toBe(200)
    expect(await as('ada', 'DELETE', '/9')).toBe(404)
    for (const line of [
      'user=bob\tip=127.0.0.1\toperation=POST /api/v1/members\tresult=failure',
      'user=bob\tip=127.0.0.1\toperation=DELETE /api/v1/members/1\tresult=failure',
      'user=ada\tip=127.0.0.1\toperation=POST /api/v1/members\tresult=success',
      'user=ada\tip=127.0.0.1\toperation=DELETE /api/v1/members/9\tresult=failure',
    ])
      expect(lines(line), line).toHaveLength(1)
    expect(lines('user=ada').filter((line) => line.includes('operation=reconfig'))).toHaveLength(1)
  })
})

it('a change is audited as one that came over HTTP, with its caller', async () => {
  await start(3, {
    adminRoleAdmin: ['sasl:ada'],
    saslUsers: { ada: 'pass' },
    auditEnabled: true,
    auditFormat: 'json',
  })
  const request = ensemble.member(1).http.request('/api/v1/members/3', {
    method: 'DELETE',
    headers: { authorization: `Basic ${btoa('ada:pass')}` },
  })
  let isAnswered = false
  void request.finally(() => (isAnswered = true))
  await ensemble.until('the answer', () => isAnswered)
  const [line] = lines('"op":"reconfig"')
  const { audit } = JSON.parse(line!.slice(line!.indexOf('{'))) as { audit: object }
  expect(audit).toMatchObject({ result: 'success', user: ['ada'], ip: '127.0.0.1', via: 'http' })
})

it('a change that came through a proxy is audited with the address of its caller, without the connection of the proxy', async () => {
  await start(3, {
    adminTrustedProxies: ['10.0.0.1'],
    adminRoleAdmin: ['ip:5.6.7.8'],
    auditEnabled: true,
    auditFormat: 'json',
  })
  const request = ensemble.member(1).http.request('/api/v1/members/3', {
    method: 'DELETE',
    from: '10.0.0.1',
    headers: { 'x-forwarded-for': '5.6.7.8' },
  })
  let isAnswered = false
  void request.finally(() => (isAnswered = true))
  await ensemble.until('the answer', () => isAnswered)
  const [line] = lines('"op":"reconfig"')
  const { audit } = JSON.parse(line!.slice(line!.indexOf('{'))) as { audit: object }
  expect(audit).toMatchObject({ result: 'success', ip: '5.6.7.8', via: 'http' })
  expect(audit).not.toHaveProperty('port')
})

describe('a change of the members without an outcome', () => {
  /** Begins a change at a member whose proposals are not committed. */
  async function begin(id: number, isAtLeader: boolean): Promise<{ readonly answer: Promise<Answer> }> {
    const never = new Promise<void>(() => {})
    for (const each of ensemble.members.keys())
      if (!isAtLeader || each !== id) ensemble.member(each).disk.beforeWrite = () => never
    const answer = ask(id, 'POST', '', { member: member(4, 'observer') })
    await ensemble.advance(100)
    return { answer }
  }

  it('is answered when the leader is lost', async () => {
    await start()
    const { leader, followers } = roles()
    const { answer } = await begin(followers[0]!, false)
    await ensemble.member(leader).crash()
    const { status, text } = await answer
    expect([status, text]).toEqual([504, expect.stringContaining('the role of the server has ended')])
    expect(text).toContain('Look at zabra member list before you try again.')
  })

  it('leaves no session behind, whatever becomes of it', async () => {
    await start()
    const { leader, followers } = roles()
    let flush = (): void => {}
    const flushed = new Promise<void>((resolve) => (flush = resolve))
    for (const id of followers) ensemble.member(id).disk.beforeWrite = () => flushed
    const answer = ask(followers[0]!, 'POST', '', { member: member(4, 'observer') })
    await ensemble.advance(100)
    await ensemble.member(leader).crash()
    for (const id of followers) ensemble.member(id).disk.beforeWrite = undefined
    flush()
    expect((await answer).status).toBe(504)
    await ensemble.until('another leader', () => ensemble.leader !== undefined && ensemble.leader !== leader)
    await ensemble.until('the end of its session', () => sessions().every((count) => count === 0))
  })

  it('is answered in time when no quorum acknowledges it', async () => {
    await start()
    const { answer } = await begin(ensemble.leader!, true)
    const { status, text } = await answer
    expect([status, text]).toEqual([
      504,
      expect.stringMatching(/within 5000 ms|role of the server has ended/),
    ])
  })

  it('is awaited by a server that stops, which begins no other one', async () => {
    await start()
    const [id, other] = roles().followers
    let flush = (): void => {}
    const flushed = new Promise<void>((resolve) => (flush = resolve))
    for (const each of [1, 2, 3]) ensemble.member(each).disk.beforeWrite = () => flushed
    const answer = ask(id!, 'POST', '', { member: member(4, 'observer') })
    await ensemble.advance(100)
    const closed = ensemble.server(id!).close()
    await ensemble.advance(100)
    expect(await ask(id!, 'DELETE', `/${other}`)).toMatchObject({
      status: 503,
      text: expect.stringContaining('Try again later: the server is stopping.') as unknown,
    })
    flush()
    expect((await answer).status).toBe(200)
    let isClosed = false
    void closed.then(() => (isClosed = true))
    await ensemble.until('the stop', () => isClosed)
    expect((await members(other!)).members).toHaveLength(4)
  })

  it('is answered by a server that stops before there is a quorum', async () => {
    await start()
    const [id] = roles().followers
    const { answer } = await begin(id!, false)
    void ensemble.server(id!).close()
    const { status, text } = await answer
    expect([status, text]).toEqual([504, expect.stringMatching(/within 5000 ms|the server is stopping/)])
  })

  it('is not begun without a leader, nor by a read-only server', async () => {
    await start(3, { readOnlyModeEnabled: true })
    for (const id of [2, 3]) await ensemble.member(id).crash()
    await ensemble.until('the end of the role', () => ensemble.server(1).role === 'looking')
    const looking = await ask(1, 'DELETE', '/3')
    expect([looking.status, looking.text]).toEqual([503, expect.stringContaining('it is looking')])
    await ensemble.until('read-only mode', () => ensemble.server(1).role === 'read-only')
    const readOnly = await ask(1, 'DELETE', '/3')
    expect([readOnly.status, readOnly.text]).toEqual([503, expect.stringContaining('read-only')])
  })

  it('is not begun by a leader that serves no clients', async () => {
    ensemble = new Ensemble(3, { reconfigEnabled: true, leaderServes: false, ...ADMIN })
    for (const each of ensemble.members.values()) await each.start()
    await ensemble.until('the followers', () => ensemble.server(1).serving && ensemble.server(2).serving)
    const { status, text } = await ask(3, 'DELETE', '/1')
    expect([status, text]).toEqual([503, expect.stringContaining('it is leading. Ask another member')])
  })

  it('goes on while the server drains', async () => {
    await start()
    const [id] = roles().followers
    await ensemble.member(id!).http.request('/api/v1/drain', { method: 'POST' })
    expect((await members(id!, 'POST', '', { member: member(4, 'observer') })).members).toHaveLength(4)
  })
})
