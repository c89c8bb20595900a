import { afterEach, describe, expect, it } from 'vitest'
import { Ensemble } from '../../ensemble/testing/ensemble.ts'
import { hideExtensions } from '../../ensemble/testing/hide-extensions.ts'
import { TestServer } from '../../testing/test-server.ts'

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

  it('says that members on its own host that make no reports have no client address, and does not ask itself for them', async () => {
    ensemble = new Ensemble(3)
    hideExtensions(ensemble)
    for (const member of ensemble.members.values()) await member.start()
    await ensemble.allServe()
    const { members } = await ask(1)
    for (const { id, state, problem } of members)
      expect([id, state, problem]).toEqual(
        id === 1
          ? [1, expect.stringMatching(/leader|follower/), null]
          : [id, 'unknown', expect.stringContaining(`write it behind server.${id}, as in …;2181`)],
      )
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
  it('hands leadership over, on the leader only', async () => {
    const { leader } = await start()
    const post = async (id: number) => {
      const request = ensemble!.member(id).http.request('/api/v1/leader/transfer', { method: 'POST' })
      let isAnswered = false
      void request.finally(() => (isAnswered = true))
      await ensemble!.until('the answer', () => isAnswered)
      return request
    }
    const follower = [1, 2, 3].find((id) => id !== leader)!
    expect(await post(follower)).toMatchObject({ status: 409 })
    expect((await post(follower)).text).toContain(`Ask server ${leader}, which leads.`)
    expect((await post(leader!)).status).toBe(202)
    await ensemble!.until(
      'another leader',
      () => ensemble!.leader !== undefined && ensemble!.leader !== leader,
    )
  })
})

afterEach(() => (ensemble = undefined))
