import { formatZxid } from '@zabra/protocol'
import type { HttpResponse } from '@zabra/runtime'
import { votersOf, type EnsembleConfiguration, type MemberConfiguration } from '../../core/quorum/index.ts'
import { FULL_VERSION } from '../../version.ts'
import type { AdminTarget } from '../admin-target.ts'
import { json, problem, type ApiCall, type ApiRoute } from './api-route.ts'
import type { ProbedMember } from './cluster-probe.ts'
import { readiness } from './health.ts'

/** The operations on an ensemble. */
export const clusterRoutes: readonly ApiRoute[] = [
  {
    path: '/api/v1/cluster',
    method: 'GET',
    role: 'view',
    summary:
      'Describes all members: role, state, zxid, the age of what is known of each, and how many voters may still fail.',
    statuses: [200],
    run: describeCluster,
  },
  {
    path: '/api/v1/leader/transfer',
    method: 'POST',
    role: 'operate',
    summary: 'Makes this leader hand leadership over to a member that is in step.',
    statuses: [202, 409],
    run: transfer,
  },
]

async function describeCluster({ target, cluster }: ApiCall): Promise<HttpResponse> {
  const { configuration, settings, platform } = target
  const own = describeSelf(target)
  if (configuration === undefined)
    return json(200, {
      members: [{ ...own, participant: true, address: null }],
      leader: null,
      version: null,
      failuresLeft: 0,
    })
  const { clientPort } = settings
  const members = await Promise.all(
    [...configuration.members.values()].map(async (member) =>
      member.id === settings.serverId
        ? { ...describeMember(member), ...own }
        : {
            ...describeMember(member),
            ...describeProbed(await cluster.ask(member, clientPort), platform.clock.monotonic()),
          },
    ),
  )
  const up = members.filter(({ state, participant }) => participant && SERVING.has(state)).length
  return json(200, {
    members,
    leader: target.leader ?? null,
    version: `0x${formatZxid(configuration.version)}`,
    failuresLeft: failuresLeft(configuration, up),
  })
}

const SERVING: ReadonlySet<string> = new Set(['leader', 'follower', 'standalone'])

/** Returns how many voters may fail until the rest is no quorum, -1 when there is none now; null where groups make it depend on which. */
function failuresLeft(configuration: EnsembleConfiguration, up: number): number | null {
  if (configuration.hierarchy !== undefined) return null
  const quorum = Math.floor(votersOf(configuration).length / 2) + 1
  return Math.max(-1, up - quorum)
}

const describeMember = ({ id, role, addresses }: MemberConfiguration) => ({
  id,
  participant: role === 'participant',
  address: addresses.map(({ host, quorumPort }) => `${host}:${quorumPort}`).join('|'),
})

function describeSelf(target: AdminTarget) {
  const { service, settings, role } = target
  const { isReady, checks } = readiness(target)
  return {
    id: settings.serverId,
    state: service?.role.mode ?? role,
    zxid: service === undefined ? null : `0x${formatZxid(service.tree.lastZxid)}`,
    softwareVersion: FULL_VERSION,
    connections: service?.connections.size ?? 0,
    znodes: service?.tree.nodeCount ?? 0,
    ageMs: 0,
    problem: isReady
      ? null
      : checks
          .filter(({ isOk }) => !isOk)
          .map(({ name, detail }) => `${name}: ${detail}`)
          .join('; '),
  }
}

const describeProbed = ({ answer, answeredAt, problem: reason }: ProbedMember, now: number) => ({
  state: reason === undefined ? answer!.mode : 'unknown',
  zxid: answer?.zxid ?? null,
  softwareVersion: answer?.version ?? null,
  connections: answer?.connections ?? null,
  znodes: answer?.znodes ?? null,
  ageMs: answer === undefined ? null : Math.floor(now - answeredAt),
  problem: reason ?? null,
})

function transfer({ target }: ApiCall): HttpResponse {
  const { role, leader } = target
  if (role !== 'leading')
    return problem(
      409,
      'The server does not lead',
      leader === undefined ? `It is ${role}.` : `Ask server ${leader}, which leads.`,
    )
  if (target.yieldLeadership()) return json(202, { from: target.settings.serverId })
  return problem(
    409,
    'No member can take over',
    'Leadership goes to a voter that is in step. Wait until one follows; zabra cluster status shows them.',
  )
}
