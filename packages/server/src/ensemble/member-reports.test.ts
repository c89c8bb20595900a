import { ManualClock } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { MAX_REPORT_BYTES } from '../core/zab/index.ts'
import { MemberReports } from './member-reports.ts'
import { Ensemble } from './testing/ensemble.ts'
import { hideExtensions } from './testing/hide-extensions.ts'

interface Member {
  readonly id: number
  readonly state: string
  readonly source: string | null
  readonly ageMs: number | null
  readonly reason: string | null
  readonly problem: string | null
  readonly zxid: string | null
  readonly behindLeader: number | null
  readonly disk: object | null
  readonly draining: boolean | null
  readonly stopPermitMs: number | null
  readonly findings: readonly { readonly id: string }[] | null
}

interface Cluster {
  readonly leader: number | null
  readonly failuresLeft: number
  readonly members: readonly Member[]
}

type Options = NonNullable<ConstructorParameters<typeof Ensemble>[1]>

const start = (size: number, settings: Options = {}): Promise<Ensemble> =>
  Ensemble.start(size, { adminRoleOperate: ['ip:127.0.0.1'], ...settings })

async function request(ensemble: Ensemble, id: number, path: string, method = 'GET'): Promise<string> {
  let text: string | undefined
  const asked = ensemble.member(id).http.request(path, { method, body: '' })
  void asked.then((answer) => (text = answer.text))
  await ensemble.until(`an answer of ${id}`, () => text !== undefined)
  return text!
}

const ask = async (ensemble: Ensemble, id: number): Promise<Cluster> =>
  JSON.parse(await request(ensemble, id, '/api/v1/cluster')) as Cluster

const member = ({ members }: Cluster, id: number): Member => members.find((one) => one.id === id)!

const others = (ensemble: Ensemble, ...ids: (number | undefined)[]): number[] =>
  [...ensemble.members.keys()].filter((id) => !ids.includes(id))

/** The type of a packet about reports as bytes, and the fields behind it up to the length of the data. */
const HEAD = Buffer.from('00007a05ffffffffffffffff', 'hex')

/** The length of the first report in a packet, behind length, kind, number, count, id, reason and age. */
const LENGTH_OFFSET = HEAD.length + 4 + 1 + 8 + 4 + 8 + 1 + 4

/** The id of the first member in a packet, behind length, kind, number and count. */
const ID_OFFSET = HEAD.length + 4 + 1 + 8 + 4

/** Returns the positions of packets about reports in what a member sends. */
function reportsIn(bytes: Uint8Array): number[] {
  const found: number[] = []
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = buffer.indexOf(HEAD); at !== -1; at = buffer.indexOf(HEAD, at + 1)) found.push(at)
  return found
}

/** Gives the packets about reports that a member sends a type that no release knows. */
function makeUnknown(ensemble: Ensemble, sender: number): void {
  ensemble.rewrite = (id, bytes) => {
    if (id !== sender) return bytes
    const changed = bytes.slice()
    for (const at of reportsIn(bytes)) changed[at + 3] = 0x7f
    return changed
  }
}

describe('GET /api/v1/cluster', () => {
  it('tells the same of all members from the leader, a follower and an observer', async () => {
    const ensemble = await start(4, { observers: [4] })
    const leader = ensemble.leader!
    expect(await ensemble.create(await ensemble.client(4), '/a')).toBe('1:0')
    const [follower, other] = others(ensemble, leader, 4)
    for (const id of [leader, follower!, 4]) {
      await ensemble.advance(2000)
      const cluster = await ask(ensemble, id)
      expect(cluster).toMatchObject({ leader, failuresLeft: 1 })
      const stateOf = new Map([
        [leader, 'leader'],
        [4, 'observer'],
      ])
      for (const one of cluster.members)
        expect(one).toMatchObject({
          state: stateOf.get(one.id) ?? 'follower',
          participant: one.id !== 4,
          address: `127.0.0.1:${2000 + one.id}`,
          source: one.id === id ? 'self' : 'report',
          reason: null,
          problem: null,
          zxid: member(cluster, leader).zxid,
          zxidLag: 0,
          behindLeader: 0,
          softwareVersion: expect.stringContaining('-zabra-'),
          featureLevel: 1,
          finalizedLevel: 0,
          uptimeMs: expect.any(Number),
          ready: true,
          checks: expect.arrayContaining([{ name: 'draining', ok: true, detail: 'ok' }]),
          draining: false,
          stopPermitMs: 0,
          disk: { data: { free: expect.any(Number), size: 2 ** 41 }, log: { size: 2 ** 41 } },
          certificates: { client: null, quorum: null, http: null },
          connections: one.id === 4 ? 1 : 0,
          sessions: 1,
          watches: 0,
          znodes: expect.any(Number),
          memory: { used: 1, limit: null },
          findings: [],
          ageMs: 0,
        })
    }
    // The same fields as the member itself says.
    const self = JSON.parse(await request(ensemble, other!, '/api/v1/self')) as object
    expect(member(await ask(ensemble, leader), other!)).toMatchObject(
      Object.fromEntries(
        Object.entries(self).filter(
          ([name]) => !['clusterId', 'version', 'role', 'leader', 'settings', 'uptimeMs'].includes(name),
        ),
      ),
    )
  })

  it('shows a member that stopped as unknown, with the reason, and what it was last with its age', async () => {
    const ensemble = await start(3)
    const leader = ensemble.leader!
    const [asked, gone] = others(ensemble, leader)
    const { ageMs: firstAge, ...before } = member(await ask(ensemble, asked!), gone!)
    expect(firstAge).toBe(0)
    await ensemble.member(gone!).stop()
    await ensemble.advance(5000)
    const cluster = await ask(ensemble, asked!)
    expect(cluster.failuresLeft).toBe(0)
    const { ageMs, ...rest } = member(cluster, gone!)
    expect(rest).toMatchObject({
      ...before,
      state: 'unknown',
      ready: null,
      source: 'report',
      reason: 'it is not connected to the leader',
      problem: expect.stringMatching(/^it is not connected to the leader; .*client address/),
    })
    expect(ageMs).toBeGreaterThanOrEqual(5000)
    await ensemble.startServing(gone!)
    await ensemble.advance(2000)
    expect(member(await ask(ensemble, asked!), gone!)).toMatchObject({ state: 'follower', problem: null })
  })

  it('shows a member that does not answer as unknown after a second', async () => {
    const ensemble = await start(3)
    const [asked, silent] = others(ensemble, ensemble.leader!)
    ensemble.member(silent!).silence()
    expect(member(await ask(ensemble, asked!), silent!)).toMatchObject({
      state: 'unknown',
      source: null,
      ageMs: null,
      zxid: null,
      disk: null,
      reason: 'it has not reported to the leader within a second',
    })
  })

  it('shows what an operator should know of another member: a drain, a permit to stop, a disk that fills', async () => {
    const ensemble = await start(3)
    const [asked, other] = others(ensemble, ensemble.leader!)
    ensemble.member(other!).disk.freeBytes = Math.floor(2 ** 41 * 0.1)
    await ensemble.advance(10_000)
    await request(ensemble, other!, '/api/v1/stop-permit', 'POST')
    await request(ensemble, other!, '/api/v1/drain', 'POST')
    await ask(ensemble, asked!)
    await ensemble.advance(2000)
    const found = member(await ask(ensemble, asked!), other!)
    expect(found).toMatchObject({
      state: 'follower',
      draining: true,
      problem: 'draining: accepts no new sessions',
      findings: [{ id: 'disk-fills', detail: expect.stringContaining('90 % of the disk of snapshots') }],
    })
    expect(found.stopPermitMs).toBeGreaterThan(0)
  })

  it('asks members of Apache ZooKeeper on their client ports, and says so', async () => {
    const ensemble = new Ensemble(3)
    const shown = hideExtensions(ensemble)
    for (const { settings } of ensemble.members.values())
      for (const [id, one] of settings.ensemble!.members)
        Object.assign(one, { client: { host: '127.0.0.1', port: 4000 + id } })
    for (const each of ensemble.members.values()) await each.start()
    await ensemble.allServe()
    shown()
    const leader = ensemble.leader!
    const [follower, other] = others(ensemble, leader)
    expect(member(await ask(ensemble, leader), follower!)).toMatchObject({
      state: 'follower',
      source: 'srvr',
      reason: 'it runs Apache ZooKeeper, which makes no reports',
      problem: null,
      zxid: expect.stringMatching(/^0x/),
      disk: null,
    })
    const cluster = await ask(ensemble, follower!)
    expect(cluster.members.map(({ id, source }) => [id, source])).toEqual(
      [1, 2, 3].map((id) => [id, id === follower ? 'self' : 'srvr']),
    )
    expect(member(cluster, other!).reason).toBe('the server asked follows no leader that collects reports')
  })

  it('is answered beside a member of an earlier release, which ignores the packets', async () => {
    const ensemble = await start(3)
    const leader = ensemble.leader!
    const [follower, other] = others(ensemble, leader)
    makeUnknown(ensemble, leader)
    expect(member(await ask(ensemble, leader), follower!)).toMatchObject({
      state: 'unknown',
      reason: 'it has not reported to the leader within a second',
    })
    makeUnknown(ensemble, follower!)
    expect(member(await ask(ensemble, follower!), other!).reason).toBe(
      'the leader has not answered within 3000 ms',
    )
    ensemble.rewrite = (_, bytes) => bytes
    await ensemble.advance(10_000)
    expect(ensemble.leader).toBe(leader)
    expect((await ask(ensemble, leader)).members.map(({ problem }) => problem)).toEqual([null, null, null])
    expect(ensemble.lines.join('\n')).not.toContain('is lost')
  })

  it('names the fields that are wrong in the report of another member, and goes on', async () => {
    const ensemble = await start(3)
    const leader = ensemble.leader!
    const [wrong] = others(ensemble, leader)
    ensemble.rewrite = (id, bytes) => {
      if (id !== wrong) return bytes
      const text = Buffer.from(bytes).toString('latin1')
      const changed = text.replace('"zxid":"0x', '"zxid":"1x').replace('"draining":false', '"draining":12345')
      return new Uint8Array(Buffer.from(changed, 'latin1'))
    }
    expect(member(await ask(ensemble, leader), wrong!)).toMatchObject({
      state: 'follower',
      zxid: null,
      behindLeader: null,
      draining: null,
      ready: true,
      problem: 'its report is wrong in zxid, draining',
    })
    ensemble.rewrite = (id, bytes) => {
      if (id !== wrong) return bytes
      return new Uint8Array(
        Buffer.from(Buffer.from(bytes).toString('latin1').replace('{"state"', '["state"'), 'latin1'),
      )
    }
    await ensemble.advance(2000)
    const found = member(await ask(ensemble, leader), wrong!)
    expect([found.state, found.problem]).toEqual([
      'unknown',
      expect.stringMatching(/^its report is not understood: expected a JSON object, got \d+ bytes/),
    ])
  })

  it('counts lag from the leader that members follow, not from one that only says so', async () => {
    const ensemble = await start(3)
    const leader = ensemble.leader!
    const [wrong, other] = others(ensemble, leader)
    expect(wrong).toBeLessThan(leader)
    ensemble.rewrite = (id, bytes) =>
      id === wrong
        ? new Uint8Array(
            Buffer.from(
              Buffer.from(bytes)
                .toString('latin1')
                .replace('"state":"follower"', '"state":"leader"  ')
                .replace(/"zxid":"0x./, '"zxid":"0xf'),
              'latin1',
            ),
          )
        : bytes
    const cluster = await ask(ensemble, leader)
    expect(member(cluster, wrong!)).toMatchObject({ state: 'leader', zxid: expect.stringMatching(/^0xf/) })
    expect(member(cluster, other!).behindLeader).toBe(0)
  })

  it.each([
    [
      'a voter, of an observer that is connected to the leader',
      2,
      4,
      'it has not reported to the leader within a second',
    ],
    ['an observer, of another one', 4, 5, 'it is not connected to the leader'],
  ])('does not count what is said by %s', async (_, sender, about, reason) => {
    const ensemble = await start(5, { observers: [4, 5] })
    const leader = ensemble.leader!
    const from = sender === leader ? 1 : sender
    if (about === 4) ensemble.member(4).silence()
    else await ensemble.member(5).stop()
    ensemble.rewrite = (id, bytes) => {
      const changed = bytes.slice()
      if (id === from)
        for (const at of reportsIn(bytes)) new DataView(changed.buffer).setInt32(at + ID_OFFSET + 4, about)
      return changed
    }
    const { members } = await ask(ensemble, leader)
    expect(members.find(({ id }) => id === about)).toMatchObject({ state: 'unknown', reason })
  })

  it('is answered at once when the leader is lost that was asked', async () => {
    const ensemble = await start(3)
    const leader = ensemble.leader!
    const [asked, other] = others(ensemble, leader)
    makeUnknown(ensemble, leader)
    ensemble.member(other!).silence()
    const answers = [asked!, leader].map((id) => ensemble.member(id).http.request('/api/v1/cluster'))
    await ensemble.advance(100)
    await ensemble.server(leader).close()
    await ensemble.advance(5000)
    const [cluster] = (await Promise.all(answers)).map(({ text }) => JSON.parse(text) as Cluster)
    expect(member(cluster!, leader).reason).toBe('the leader was lost before it answered')
  })

  it('closes the connection of a learner whose report is longer than 8 KiB, and shows the others', async () => {
    const ensemble = await start(3)
    const leader = ensemble.leader!
    const [wrong, other] = others(ensemble, leader)
    ensemble.rewrite = (id, bytes) => {
      const changed = bytes.slice()
      if (id === wrong)
        for (const at of reportsIn(bytes))
          new DataView(changed.buffer).setInt32(at + LENGTH_OFFSET, MAX_REPORT_BYTES + 1)
      return changed
    }
    const cluster = await ask(ensemble, leader)
    expect(member(cluster, other!)).toMatchObject({ state: 'follower', problem: null })
    expect(member(cluster, wrong!)).toMatchObject({ reason: 'it is not connected to the leader' })
    expect(ensemble.lines.join('\n')).toContain('Expected a report of up to 8192 bytes, got 8193')
    ensemble.rewrite = (_, bytes) => bytes
    await ensemble.allServe()
    await ensemble.advance(5000)
    expect(member(await ask(ensemble, leader), wrong!)).toMatchObject({ state: 'follower', problem: null })
  })

  it('makes members send nothing while no member asks, and once a second however many ask', async () => {
    const ensemble = await start(3)
    let packets = 0
    ensemble.rewrite = (_, bytes) => {
      packets += reportsIn(bytes).length
      return bytes
    }
    await ensemble.advance(20_000)
    expect(packets).toBe(0)
    const answers: Promise<unknown>[] = []
    for (let ms = 0; ms < 5000; ms += 50) {
      for (const id of ensemble.members.keys())
        answers.push(ensemble.member(id).http.request('/api/v1/cluster'))
      await ensemble.advance(50)
    }
    await ensemble.advance(5000)
    await Promise.all(answers)
    // A round has two requests of followers and their answers, and two of the leader with theirs.
    expect(packets).toBeGreaterThanOrEqual(5 * 4)
    expect(packets).toBeLessThanOrEqual(7 * 8)
  })

  it('tells the same of observers behind a follower, from each of them and from the leader', async () => {
    const ensemble = new Ensemble(5, { observers: [4, 5] })
    for (const id of [1, 4, 5]) {
      const each = ensemble.member(id)
      each.settings = Object.freeze({ ...each.settings, observerMasterPort: 5001 })
    }
    for (const each of ensemble.members.values()) await each.start()
    await ensemble.allServe()
    const leader = ensemble.leader!
    for (const asked of [4, 5, leader, 1]) {
      await ensemble.advance(2000)
      const { members } = await ask(ensemble, asked)
      expect(members.map(({ id, state, source }) => [id, state, source])).toEqual(
        [1, 2, 3, 4, 5].map((id) => [
          id,
          id > 3 ? 'observer' : id === leader ? 'leader' : 'follower',
          id === asked ? 'self' : 'report',
        ]),
      )
    }
    await ensemble.advance(2000)
    ensemble.member(5).silence()
    const { members } = await ask(ensemble, leader)
    expect(members.map(({ reason }) => reason)).toEqual([
      null,
      null,
      null,
      null,
      'it has not reported to the leader within a second',
    ])
  })
})

it('a member makes one report at a time, however often its leader asks', async () => {
  let made = 0
  const sent: number[] = []
  const reports = new MemberReports(new ManualClock(), 7, async () => Uint8Array.of(++made))
  for (let number = 1; number <= 5; number++) reports.report(() => void sent.push(number))
  await reports.own()
  expect([made, sent]).toEqual([2, [1]])
  reports.report(() => void sent.push(6))
  await reports.own()
  expect(sent).toEqual([1, 6])
})
