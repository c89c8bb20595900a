import { afterEach, describe, expect, it } from 'vitest'
import { Ensemble } from '../../../ensemble/testing/ensemble.ts'
import { hideExtensions } from '../../../ensemble/testing/hide-extensions.ts'
import type { ServerSettings } from '../../../settings/index.ts'
import { TestServer } from '../../../testing/test-server.ts'

interface Cluster {
  readonly leader: number | null
  readonly failuresLeft: number
  readonly members: readonly {
    readonly id: number
    readonly state: string
    readonly zxid: string | null
    readonly ageMs: number | null
    readonly problem: string | null
  }[]
}

let ensemble: Ensemble | undefined

/** Clients of these members are on port 4000 + id. */
async function start(): Promise<Ensemble> {
  ensemble = await Ensemble.start(3, { adminRoleOperate: ['ip:127.0.0.1'] })
  for (const { settings } of ensemble.members.values())
    for (const [id, member] of settings.ensemble!.members)
      Object.assign(member, { client: { host: '127.0.0.1', port: 4000 + id } })
  return ensemble
}

async function ask(id: number): Promise<Cluster> {
  let text: string | undefined
  void ensemble!
    .member(id)
    .http.request('/api/v1/cluster')
    .then((answer) => (text = answer.text))
  await ensemble!.until('the answer', () => text !== undefined)
  return JSON.parse(text!) as Cluster
}

describe('/api/v1/cluster', () => {
  it('shows every member the same, from any of them', async () => {
    const { leader } = await start()
    for (const id of [1, 2, 3]) {
      const cluster = await ask(id)
      expect(cluster).toMatchObject({ leader, failuresLeft: 1 })
      expect(cluster.members.map((member) => [member.id, member.state, member.problem])).toEqual(
        [1, 2, 3].map((other) => [other, other === leader ? 'leader' : 'follower', null]),
      )
      expect(new Set(cluster.members.map(({ zxid }) => zxid)).size).toBe(1)
    }
  })

  it('shows what it last knew of a member that is gone, with its age', async () => {
    const { leader } = await start()
    const [gone, asked] = [1, 2, 3].filter((id) => id !== leader)
    await ask(asked!)
    await ensemble!.member(gone!).crash()
    await ensemble!.advance(5000)
    const { members, failuresLeft } = await ask(asked!)
    const member = members.find(({ id }) => id === gone)!
    expect([member.state, failuresLeft]).toEqual(['unknown', 0])
    expect(member.problem).toBeTruthy()
    expect(member.zxid).toMatch(/^0x/)
    expect(member.ageMs).toBeGreaterThanOrEqual(5000)
  })

  /** Starts three members that make no reports. */
  async function startWithoutReports(settings: Partial<ServerSettings> = {}): Promise<void> {
    ensemble = new Ensemble(3, settings)
    hideExtensions(ensemble)
    for (const member of ensemble.members.values()) await member.start()
    await ensemble.allServe()
  }

  it('says that members on its own host that make no reports have no client address, and does not ask itself for them', async () => {
    await startWithoutReports()
    const { members } = await ask(1)
    for (const { id, state, problem } of members)
      expect([id, state, problem]).toEqual(
        id === 1
          ? [1, expect.stringMatching(/leader|follower/), null]
          : [id, 'unknown', expect.stringContaining(`write it behind server.${id}, as in …;2181`)],
      )
  })

  it('says how to give them one where the configuration of the last change counts, which does what it says', async () => {
    await startWithoutReports({ reconfigEnabled: true, adminRoleAdmin: ['ip:127.0.0.1'] })
    const second = (await ask(1)).members.find(({ id }) => id === 2)!
    const advised = /zabra member add '(.*);2181'$/.exec(second.problem!)![1]!
    expect(advised).toBe('2=127.0.0.1:2002:3002:participant')
    const body = JSON.stringify({ member: `${advised};4002` })
    let status = 0
    void ensemble!
      .member(1)
      .http.request('/api/v1/members', { method: 'POST', body })
      .then((answer) => (status = answer.status))
    await ensemble!.until('the change', () => status === 200)
    await ensemble!.advance(2000)
    expect((await ask(1)).members.find(({ id }) => id === 2)).toMatchObject({ problem: null })
  })

  it('shows a standalone server alone', async () => {
    const server = await TestServer.start()
    const { text } = await server.http.request('/api/v1/cluster')
    expect(JSON.parse(text)).toMatchObject({
      members: [{ state: 'standalone', source: 'self', ready: true, behindLeader: null, ageMs: 0 }],
      leader: null,
    })
    await server.stop()
  })
})

describe('/api/v1/leader/transfer', () => {
  interface Answer {
    readonly status: number
    readonly text: string
  }

  const post = async (id: number, body?: unknown): Promise<Answer> => {
    const request = ensemble!.member(id).http.request('/api/v1/leader/transfer', {
      method: 'POST',
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    let isAnswered = false
    void request.finally(() => (isAnswered = true))
    await ensemble!.until('the answer', () => isAnswered, 60_000)
    return request
  }

  it('hands leadership over, on the leader only, and answers once this server follows another one', async () => {
    const { leader } = await start()
    const follower = [1, 2, 3].find((id) => id !== leader)!
    expect(await post(follower)).toMatchObject({ status: 409 })
    expect((await post(follower)).text).toContain(`Ask server ${leader}, which leads.`)
    const { status, text } = await post(leader!)
    const after = JSON.parse(text) as { from: number; leader: number }
    expect([status, after.from]).toEqual([200, leader])
    expect(after.leader).not.toBe(leader)
    expect(ensemble!.leader).toBe(after.leader)
    expect(ensemble!.server(leader!)).toMatchObject({ role: 'following', serving: true })
  })

  it('hands it over to the voter that the caller names, whatever its id is, under load', async () => {
    ensemble = await Ensemble.start(5, { adminRoleOperate: ['ip:127.0.0.1'] })
    let created = 0
    for (const to of [1, 4, 2, 5, 3]) {
      const client = await ensemble.client(to)
      for (let i = 0; i < 20; i++) client.create(++created, `/node-${created}`)
      const from = ensemble.leader
      expect(await post(from!, { to })).toMatchObject({
        status: 200,
        text: `{"from":${from},"leader":${to}}\n`,
      })
      expect(ensemble.leader).toBe(to)
      await ensemble.allServe()
    }
    expect(await post(1, { to: 3 })).toMatchObject({ status: 200, text: '{"from":3,"leader":3}\n' })
    const digests = [1, 2, 3, 4, 5].map((id) => ensemble!.server(id).stats().nodes)
    expect(new Set(digests).size).toBe(1)
  })

  it('says why a server cannot take over', async () => {
    ensemble = await Ensemble.start(6, { adminRoleOperate: ['ip:127.0.0.1'], observers: [4] })
    const { leader } = ensemble
    expect(leader).toBe(6)
    for (const body of ['x', '[]', { to: 'a' }, { to: 256 }, { to: 1.5 }, { to: -1 }])
      expect(await post(6, body)).toMatchObject({
        status: 400,
        text: expect.stringContaining('of a voter') as unknown,
      })
    const permit = ensemble.member(2).http.request('/api/v1/stop-permit', { method: 'POST' })
    await ensemble.advance(100)
    expect((await permit).status).toBe(200)
    await ensemble.member(1).crash()
    await ensemble.advance(100)
    const refusals = [
      [9, 'Server 9 is no member'],
      [4, 'zabra member promote 4'],
      [2, 'it has a permit to stop'],
      [1, 'it does not follow, or is being brought up to date'],
    ] as const
    for (const [to, reason] of refusals) {
      const { status, text } = await post(6, { to })
      expect([status, text]).toEqual([409, expect.stringContaining(reason)])
    }
    expect(ensemble.leader).toBe(6)
  })

  it('stays with the leader when the voter has not everything in time', async () => {
    const { leader } = await start()
    const [slow, fast] = [1, 2, 3].filter((id) => id !== leader)
    const never = new Promise<void>(() => {})
    ensemble!.member(slow!).disk.beforeWrite = () => never
    const client = await ensemble!.client(fast!)
    client.create(1, '/a')
    await ensemble!.advance(100)
    const { status, text } = await post(leader!, { to: slow })
    expect([status, text]).toEqual([409, expect.stringContaining('no follower had all transactions in time')])
    expect(ensemble!.leader).toBe(leader)
  })

  it('answers that the server stops', async () => {
    const { leader } = await start()
    const [other] = [1, 2, 3].filter((id) => id !== leader)
    const never = new Promise<void>(() => {})
    ensemble!.member(other!).disk.beforeWrite = () => never
    const client = await ensemble!.client([1, 2, 3].find((id) => id !== leader && id !== other)!)
    client.create(1, '/a')
    await ensemble!.advance(100)
    const answer = post(leader!, { to: other })
    await ensemble!.advance(100)
    void ensemble!.server(leader!).close()
    expect(await answer).toMatchObject({
      status: 503,
      text: expect.stringContaining('the server stops') as unknown,
    })
  })

  it('is refused by a standalone server', async () => {
    const server = await TestServer.start({ adminRoleOperate: ['ip:127.0.0.1'] })
    const { status, text } = await server.http.request('/api/v1/leader/transfer', { method: 'POST' })
    expect([status, text]).toEqual([
      409,
      expect.stringContaining('There is no other member that could lead.'),
    ])
    await server.stop()
  })
})

afterEach(() => (ensemble = undefined))
