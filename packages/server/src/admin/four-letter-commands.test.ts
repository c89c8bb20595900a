import { ManualClock } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { SessionMap } from '../core/session-map.ts'
import { LearnerSessions, SessionTracker } from '../core/sessions/index.ts'
import { PipelineFixture } from '../pipeline/testing/pipeline-fixture.ts'
import { ReadOnlyPipeline } from '../pipeline/index.ts'
import type { MemberMetrics, RoleMetrics } from '../connections/role-metrics.ts'

/** The status of a member, with values of a real ensemble of three voters and an observer. */
const member: MemberMetrics = {
  peerState: 'following - broadcast',
  quorumSize: 3,
  conf: {
    serverId: 3,
    initLimit: 10,
    syncLimit: 5,
    electionAlg: 3,
    electionPort: 49609,
    quorumPort: 48109,
    isObserver: false,
    membership: 'server.1=127.0.0.1:1:2:participant;127.0.0.1:3\nversion=0',
  },
  yieldLeadership: () => 'Handing over.',
  requestLeadership: () => 'Asked.',
}

const leader = {
  learners: 3,
  syncedFollowers: 2,
  syncedNonVotingFollowers: 0,
  syncedObservers: 1,
  peers: [],
  pendingSyncs: 0,
  uptimeMs: 529.7,
  lastProposalSize: 87,
  minProposalSize: 48,
  maxProposalSize: 87,
}

function side(
  role: RoleMetrics,
  localSessions = false,
  table = new SessionMap([[0x100021cce440000n, 10_000]]),
): Promise<PipelineFixture> {
  const clock = new ManualClock()
  const leads = role.mode === 'leader'
  return PipelineFixture.open({
    clock,
    role,
    localSessions,
    sessions: leads ? new SessionTracker(1000, 0, { table }) : new LearnerSessions(table),
    createPipeline: (context) => new ReadOnlyPipeline(context),
  })
}

const keysOf = (mntr: string): string[] =>
  mntr
    .trim()
    .split('\n')
    .map((line) => line.slice(0, line.indexOf('\t')))

describe('the four-letter commands of a member', () => {
  it('show the role in srvr and mntr, with peer_state as the third metric', async () => {
    for (const mode of ['follower', 'observer', 'leader'] as const) {
      const server = await side({ mode, member: { ...member, ...(mode === 'leader' ? { leader } : {}) } })
      expect(await server.command('srvr')).toContain(`\nMode: ${mode}\n`)
      const keys = keysOf(await server.command('mntr'))
      expect(keys.slice(0, 3)).toEqual(['zk_version', 'zk_server_state', 'zk_peer_state'])
      expect(keys).toContain('zk_quorum_size')
    }
  })

  it('show the leader metrics of Apache ZooKeeper on a leader, and on no follower', async () => {
    const only = [
      'zk_learners',
      'zk_synced_followers',
      'zk_synced_non_voting_followers',
      'zk_synced_observers',
      'zk_pending_syncs',
      'zk_leader_uptime',
      'zk_last_proposal_size',
      'zk_min_proposal_size',
      'zk_max_proposal_size',
    ]
    const leading = await (await side({ mode: 'leader', member: { ...member, leader } })).command('mntr')
    expect(keysOf(leading)).toEqual(expect.arrayContaining(only))
    expect(leading).toContain('zk_leader_uptime\t529\n')
    const following = keysOf(await (await side({ mode: 'follower', member })).command('mntr'))
    expect(following.filter((key) => only.includes(key))).toEqual([])
  })

  it('end srvr and stat of a leader with its proposal sizes', async () => {
    const server = await side({ mode: 'leader', member: { ...member, leader } })
    const end = 'Mode: leader\nNode count: 5\nProposal sizes last/min/max: 87/48/87\n'
    expect((await server.command('srvr')).endsWith(end)).toBe(true)
    expect((await server.command('stat')).endsWith(end)).toBe(true)
  })

  it('show decimal numbers only in mntr, but for the version and the states', async () => {
    const texts = new Set(['zk_version', 'zk_server_state', 'zk_peer_state'])
    for (const mode of ['standalone', 'follower', 'leader'] as const) {
      const role = { mode, ...(mode === 'standalone' ? {} : { member: { ...member, leader } }) }
      const lines = (await (await side(role)).command('mntr')).trim().split('\n')
      expect(lines.length).toBeGreaterThan(50)
      const malformed = lines
        .map((line) => line.split('\t'))
        .filter(([key, value]) => !texts.has(key!) && !/^-?\d+(\.\d+)?$/.test(value!))
      expect(malformed).toEqual([])
    }
  })

  it('show observer_master_id on an observer, and end mntr with the metrics that Apache ZooKeeper lacks', async () => {
    const role = { ...member, peerState: 'observing - broadcast', observerMasterId: 3 }
    const server = await side({ mode: 'observer', member: { ...role, extraMetrics: [['leader_id', 3]] } })
    const mntr = await server.command('mntr')
    expect(keysOf(mntr)[3]).toBe('zk_observer_master_id')
    expect(mntr.endsWith('zk_leader_id\t3\n')).toBe(true)
  })

  it('show in dump the session timeouts on a learner by id, and the session deadlines on a leader', async () => {
    const following = await side({ mode: 'follower', member })
    expect(await following.command('dump')).toMatch(
      /^SessionTracker dump:\nGlobal Sessions\(1\):\n0x100021cce440000\t10000ms\nephemeral nodes dump:\n/,
    )
    const leading = await side({ mode: 'leader', member: { ...member, leader } })
    expect(await leading.command('dump')).toMatch(
      /^SessionTracker dump:\nSession Sets \(1\)\/\(1\):\n1 expire at .*:\n\t0x100021cce440000\nephemeral/,
    )
  })

  it('make the dump of a learner with a thousand sessions in several turns, sorted by id', async () => {
    const ids = Array.from({ length: 1000 }, (_, i) => BigInt((i * 7) % 1000) - 200n)
    const following = await side(
      { mode: 'follower', member },
      false,
      new SessionMap(ids.map((id) => [id, 4000])),
    )
    const soon = following.clock.immediate.bind(following.clock)
    let turns = 0
    following.clock.immediate = (action) => {
      turns++
      soon(action)
    }
    const text = await following.command('dump')
    const sorted = Array.from({ length: 1000 }, (_, i) => BigInt.asUintN(64, BigInt(i) - 200n).toString(16))
    const lines = sorted.map((id) => `0x${id}\t4000ms\n`).join('')
    expect(text.startsWith(`SessionTracker dump:\nGlobal Sessions(1000):\n${lines}ephemeral`)).toBe(true)
    expect(turns).toBeGreaterThan(13)
  })

  it('show local sessions before global ones in dump', async () => {
    const following = await side({ mode: 'follower', member }, true)
    expect(await following.command('dump')).toMatch(
      /^SessionTracker dump:\nLocal Session Sets \(0\)\/\(0\):\nGlobal Sessions\(1\):\n/,
    )
    const leading = await side({ mode: 'leader', member: { ...member, leader } }, true)
    expect(await leading.command('dump')).toMatch(
      /^SessionTracker dump:\nLocal Session Sets \(0\)\/\(0\):\nGlobal Session Sets \(1\)\/\(1\):\n/,
    )
  })

  it('end conf with the membership, except on a read-only server', async () => {
    const server = await side({ mode: 'follower', member })
    const own = 'initLimit=10\nsyncLimit=5\nelectionAlg=3\nelectionPort=49609\nquorumPort=48109\npeerType=0\n'
    const { membership } = member.conf
    expect((await server.command('conf')).endsWith(`serverId=3\n${own}membership: \n${membership}`)).toBe(
      true,
    )
    const { membership: _, ...conf } = member.conf
    const alone = await side({
      mode: 'read-only',
      member: { ...member, conf: { ...conf, isObserver: true } },
    })
    expect((await alone.command('conf')).endsWith('quorumPort=48109\npeerType=1\n')).toBe(true)
    expect((await (await side({ mode: 'standalone' })).command('conf')).endsWith('serverId=0\n')).toBe(true)
  })

  it('yield and request leadership on a member, and say on a standalone server that there is none', async () => {
    const server = await side({ mode: 'follower', member })
    expect(await server.command('ydld')).toBe('Handing over.\n')
    expect(await server.command('rqld')).toBe('Asked.\n')
    const alone = await side({ mode: 'standalone' })
    expect(await alone.command('ydld')).toBe(
      'This server is standalone: it has no leadership to hand over.\n',
    )
  })
})
