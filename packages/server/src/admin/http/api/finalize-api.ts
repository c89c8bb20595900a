import type { HttpResponse } from '@zabra/runtime'
import { MAX_FEATURE_LEVEL } from '../../../core/quorum/index.ts'
import type { AdminTarget, FinalizePlan } from '../../admin-target.ts'
import { json, problem, type ApiCall, type ApiRoute } from './api-route.ts'
import { leaderAdvice } from './leader-advice.ts'

const PATH = '/api/v1/cluster/finalize'

/** The operations that end the time in which an ensemble can go back to an earlier release. */
export const finalizeRoutes: readonly ApiRoute[] = [
  {
    path: PATH,
    method: 'GET',
    role: 'view',
    summary:
      'Describes what finalizing a feature level would do, of the highest possible level by default, and what is in the way. The leader answers.',
    query: { level: { type: 'integer', minimum: 1, maximum: MAX_FEATURE_LEVEL } },
    statuses: [200, 400, 409],
    run(call) {
      const { target, request } = call
      const text = request.query.get('level')
      const level = text === null ? undefined : Number(text)
      if (level !== undefined && !isLevel(level)) return badLevel('level=n in the query')
      const plan = target.features.plan(level)
      return plan === undefined ? notLeading(call) : json(200, describePlan(plan))
    },
  },
  {
    path: PATH,
    method: 'POST',
    role: 'operate',
    summary:
      'Finalizes a feature level, the `level` of the body or the highest possible one: its formats and packets are used from then on, and no member can go back to Apache ZooKeeper or to a release below it. The leader does it, once all members are connected and at the level.',
    body: { level: { type: 'integer', minimum: 1, maximum: MAX_FEATURE_LEVEL } },
    statuses: [200, 202, 400, 409],
    run: finalize,
  },
]

async function finalize(call: ApiCall): Promise<HttpResponse> {
  const { target } = call
  const body = await call.readBody()
  const { level } = body ?? {}
  if (body === undefined || !(level === undefined || isLevel(level)))
    return badLevel('{"level": n}, or no body,')
  const result = await target.features.finalize(level)
  if (result === undefined) return notLeading(call)
  const { plan, isFinalized, waitsFor } = result
  if (isFinalized) return json(200, { level: plan.level, finalized: target.features.finalized })
  if (waitsFor === undefined)
    return problem(409, 'The level cannot be finalized', `${plan.obstacles.join('; ')}.`)
  return json(202, { level: plan.level, finalized: target.features.finalized, waitsFor })
}

/** Returns the feature levels of a server and its ensemble. */
export function describeFeatures({ features }: AdminTarget): object {
  const { release, finalized, proposed } = features
  const plan = features.plan()
  return {
    release,
    finalized,
    proposed: proposed === 0 ? null : proposed,
    members: plan?.members.map(({ id, release: level }) => ({ id, release: level ?? null })) ?? null,
    readyForMs: plan?.readyForMs === undefined ? null : Math.floor(plan.readyForMs),
  }
}

const describePlan = ({ level, finalized, members, obstacles }: FinalizePlan): object => ({
  level,
  finalized,
  members: members.map(({ id, release, obstacle }) => ({
    id,
    release: release ?? null,
    obstacle: obstacle ?? null,
  })),
  obstacles,
})

const isLevel = (level: unknown): level is number =>
  typeof level === 'number' && Number.isInteger(level) && level >= 1 && level <= MAX_FEATURE_LEVEL

const badLevel = (expected: string): HttpResponse =>
  problem(400, 'The level is not understood', `Expected ${expected} with n from 1 to ${MAX_FEATURE_LEVEL}.`)

const notLeading = async (call: ApiCall): Promise<HttpResponse> =>
  problem(
    409,
    'The server does not lead',
    await leaderAdvice(
      call,
      'No level can be finalized while a member runs it: replace each such member by a Zabra server (https://github.com/zabra/zabra/blob/main/docs/migrate.md), then ask the leader.',
    ),
  )
