import { formatZxid } from '@zabra/protocol'
import type { HttpResponse } from '@zabra/runtime'
import { votersOf, type EnsembleConfiguration, type MemberConfiguration } from '../../core/quorum/index.ts'
import { MAX_STOP_PERMIT_MS, type StopPermitAnswer } from '../../core/zab/index.ts'
import { FULL_VERSION } from '../../version.ts'
import type { AdminTarget } from '../admin-target.ts'
import { json, problem, type ApiCall, type ApiRoute } from './api-route.ts'
import type { ProbedMember } from './cluster-probe.ts'
import { describeFeatures } from './finalize-api.ts'
import { readiness } from './health.ts'
import { numberIn } from './json-body.ts'
import { clientPortOf, leaderAdvice } from './leader-advice.ts'

/** For how long a permit to stop is asked for by default, in seconds. */
const DEFAULT_PERMIT_SECONDS = 120

/** The operations on an ensemble. */
export const clusterRoutes: readonly ApiRoute[] = [
  {
    path: '/api/v1/cluster',
    method: 'GET',
    role: 'view',
    summary:
      'Describes the ensemble: its id, how many voters may still fail, and of all members the role, state, zxid, and the age of what is known of each.',
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
  {
    path: '/api/v1/stop-permit',
    method: 'POST',
    role: 'operate',
    summary: `Asks the leader for a permit to stop this server within \`seconds\` (${DEFAULT_PERMIT_SECONDS} by default). It permits as many voters as the quorum can spare.`,
    body: { seconds: { type: 'number', exclusiveMinimum: 0, maximum: MAX_STOP_PERMIT_MS / 1000 } },
    statuses: [200, 400, 409, 503],
    run: requestStop,
  },
  {
    path: '/api/v1/stop-permit',
    method: 'DELETE',
    role: 'operate',
    summary: 'Gives the permit to stop back.',
    statuses: [200],
    run({ target }) {
      target.releaseStop()
      return json(200, { seconds: 0 })
    },
  },
]

async function requestStop({ target, request }: ApiCall): Promise<HttpResponse> {
  const seconds = await numberIn(request.body, 'seconds', {
    max: MAX_STOP_PERMIT_MS / 1000,
    byDefault: DEFAULT_PERMIT_SECONDS,
  })
  if (seconds === undefined || seconds === 0)
    return problem(
      400,
      'The body is not understood',
      `Expected {"seconds": n} with n from 1 to ${MAX_STOP_PERMIT_MS / 1000}, or no body.`,
    )
  const result = await target.requestStop(seconds * 1000)
  if ('unavailable' in result)
    return problem(503, 'No leader can be asked', `Try again later: ${result.unavailable}.`)
  if (result.isGranted) return json(200, { id: target.settings.serverId, seconds })
  return problem(409, 'The quorum needs this server', `Try again later: ${describeRefusal(result)}`)
}

function describeRefusal({ missing, stopping }: Pick<StopPermitAnswer, 'missing' | 'stopping'>): string {
  const reasons = [
    missing.length === 0 ? '' : `voters that are down or behind: ${missing.join(', ')}`,
    stopping.length === 0 ? '' : `members with a permit to stop: ${stopping.join(', ')}`,
  ].filter((reason) => reason !== '')
  return reasons.length === 0 ? 'the other voters are no quorum.' : `${reasons.join('; ')}.`
}

async function describeCluster({ target, cluster }: ApiCall): Promise<HttpResponse> {
  const { configuration, settings, platform } = target
  const own = describeSelf(target)
  if (configuration === undefined)
    return json(200, {
      members: [{ ...own, participant: true, address: null }],
      leader: null,
      clusterId: target.clusterId ?? null,
      features: describeFeatures(target),
      version: null,
      failuresLeft: 0,
    })
  const members = await Promise.all(
    [...configuration.members.values()].map(async (member) =>
      member.id === settings.serverId
        ? { ...describeMember(member), ...own }
        : {
            ...describeMember(member),
            ...describeProbed(
              await cluster.ask(member, clientPortOf(target, member)),
              platform.clock.monotonic(),
            ),
          },
    ),
  )
  const up = members.filter(({ state, participant }) => participant && SERVING.has(state)).length
  return json(200, {
    members,
    leader: target.leader ?? null,
    clusterId: target.clusterId ?? null,
    features: describeFeatures(target),
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

async function transfer({ target, cluster }: ApiCall): Promise<HttpResponse> {
  if (target.role !== 'leading')
    return problem(
      409,
      'The server does not lead',
      await leaderAdvice({ target, cluster }, 'Restart it: the others elect another leader.'),
    )
  if (target.yieldLeadership()) return json(202, { from: target.settings.serverId })
  return problem(
    409,
    'No member can take over',
    'Leadership goes to a voter that is in step. Wait until one follows; zabra cluster status shows them.',
  )
}
