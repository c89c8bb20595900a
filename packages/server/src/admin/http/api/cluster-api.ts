import { formatZxid } from '@zabra/protocol'
import type { HttpResponse } from '@zabra/runtime'
import {
  votersOf,
  type EnsembleConfiguration,
  type MemberConfiguration,
  type ServerId,
} from '../../../core/quorum/index.ts'
import { MAX_STOP_PERMIT_MS, type StopPermitAnswer } from '../../../core/zab/index.ts'
import type { TransferResult } from '../../admin-target.ts'
import { json, problem, type ApiCall, type ApiRoute } from './api-route.ts'
import type { KnownMember } from './cluster-reports.ts'
import { describeFeatures } from './finalize-api.ts'
import { numberIn } from './json-body.ts'
import { leaderAdvice } from './leader-advice.ts'
import { notReady, type MemberReport } from './member-report.ts'

/** For how long a permit to stop is asked for by default, in seconds. */
const DEFAULT_PERMIT_SECONDS = 120
/** The highest id of a server. */
const MAX_SERVER_ID = 255

/** The operations on an ensemble. */
export const clusterRoutes: readonly ApiRoute[] = [
  {
    path: '/api/v1/cluster',
    method: 'GET',
    role: 'view',
    summary:
      'Describes the ensemble: its id, how many voters may still fail, and of all members what `/api/v1/self` says of each, how far it is behind the leader, how and how long ago that was known, and what is wrong. What is not known is null, with the reason.',
    statuses: [200],
    run: describeCluster,
  },
  {
    path: '/api/v1/leader/transfer',
    method: 'POST',
    role: 'operate',
    summary:
      'Makes this leader hand leadership over: to the voter `to`, if it is in step and may not stop, or else to the one that the others elect. Answers once this server follows another leader; at once, with the same `from` and `leader`, where `to` leads already.',
    body: { to: { type: 'integer', minimum: 0, maximum: MAX_SERVER_ID } },
    statuses: [200, 400, 409, 503],
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

async function describeCluster({ target, report, members: reports }: ApiCall): Promise<HttpResponse> {
  const { configuration, settings } = target
  const own = describeSelf(await report())
  const ensemble = {
    leader: target.leader ?? null,
    clusterId: target.clusterId ?? null,
    features: describeFeatures(target),
  }
  if (configuration === undefined)
    return json(200, {
      members: [{ id: settings.serverId, participant: true, address: null, ...own, behindLeader: null }],
      ...ensemble,
      version: null,
      failuresLeft: 0,
    })
  const known = await reports.read(target)
  const described = [...configuration.members.values()].map((member) => {
    const other = known.get(member.id)
    return {
      ...describeMember(member),
      ...(other === undefined ? own : describeKnown(other, reports.ageOf(other))),
    }
  })
  // One that has lost the others, or lies, says that it leads, too.
  const leads = ({ id, state }: (typeof described)[number]): boolean =>
    state === 'leader' && id === (target.leader ?? id)
  const leaderZxid = described.find(leads)?.zxid ?? null
  const up = described.filter(({ state, participant }) => participant && SERVING.has(state)).length
  return json(200, {
    members: described.map((member) => ({ ...member, behindLeader: lagBehind(member.zxid, leaderZxid) })),
    ...ensemble,
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

const describeSelf = (report: MemberReport) => ({
  ...report,
  source: 'self',
  ageMs: 0,
  reason: null,
  problem: notReady(report),
})

/** Describes another member. What it is known to have been last is shown with the state `unknown`; whether it is ready is not known then. */
const describeKnown = (
  { report, source, reason, isCurrent, problem }: KnownMember,
  ageMs: number | null,
) => ({
  ...report,
  state: (isCurrent ? report.state : null) ?? 'unknown',
  ready: isCurrent ? report.ready : null,
  source: source ?? null,
  ageMs,
  reason,
  problem,
})

/** Returns how many transactions a zxid is behind that of the leader: those of its epoch where that is a later one. */
function lagBehind(zxid: string | null, leader: string | null): number | null {
  if (zxid === null || leader === null || !ZXID.test(zxid) || !ZXID.test(leader)) return null
  const [own, last] = [BigInt(zxid), BigInt(leader)]
  const isNewEpoch = last >> 32n > own >> 32n
  return own >= last ? 0 : Number(isNewEpoch ? last & 0xffff_ffffn : last - own)
}

const ZXID = /^0x[\da-f]{1,16}$/

async function transfer(call: ApiCall): Promise<HttpResponse> {
  const { target } = call
  const { configuration, leader } = target
  const body = await call.readBody()
  const { to } = body ?? {}
  if (body === undefined || !(to === undefined || isServerId(to)))
    return problem(
      400,
      'The body is not understood',
      `Expected {"to": n} with the id of a voter, from 0 to ${MAX_SERVER_ID}, or no body.`,
    )
  if (configuration === undefined)
    return problem(409, 'The server is a standalone one', 'There is no other member that could lead.')
  const role = to === undefined ? 'participant' : configuration.members.get(to)?.role
  if (role === undefined)
    return problem(409, `Server ${to} is no member`, `Expected one of ${votersOf(configuration).join(', ')}.`)
  if (role === 'observer')
    return problem(409, `Server ${to} is an observer`, `Make it a voter first: zabra member promote ${to}.`)
  // The role of this server may be one that is not established yet.
  if (to !== undefined && to === leader && target.service !== undefined)
    return json(200, { from: to, leader })
  if (target.role !== 'leading')
    return problem(
      409,
      'The server does not lead',
      await leaderAdvice(call, 'Restart it: the others elect another leader.'),
    )
  return describeTransfer(target.settings.serverId, to, await target.transferLeadership(to))
}

function describeTransfer(from: ServerId, to: ServerId | undefined, result: TransferResult): HttpResponse {
  if ('unknown' in result)
    return problem(
      503,
      'It is not known who leads',
      `Leadership was to be handed over, but ${result.unknown}. zabra cluster status shows the leader.`,
    )
  if ('refusal' in result)
    return problem(
      409,
      to === undefined ? 'No member can take over' : `Server ${to} cannot take over`,
      `${result.refusal}. zabra cluster status shows which voters are in step.`,
    )
  const { leader } = result
  if (to === undefined || leader === to) return json(200, { from, leader })
  return problem(
    409,
    `Server ${leader} leads now`,
    `It was elected before server ${to} took part in the election. Ask server ${leader} to hand leadership over.`,
  )
}

const isServerId = (id: unknown): id is ServerId =>
  typeof id === 'number' && Number.isInteger(id) && id >= 0 && id <= MAX_SERVER_ID
