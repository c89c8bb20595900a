import { ErrorCode, errorName, errors, formatZxid } from '@zabra/protocol'
import type { HttpResponse } from '@zabra/runtime'
import type { MemberChangeResult } from '../../../connections/member-changes.ts'
import {
  applyReconfig,
  formatMember,
  parseConfiguration,
  ReconfigurationError,
  votersOf,
  type EnsembleConfiguration,
  type MemberConfiguration,
} from '../../../core/quorum/index.ts'
import { fewestVoters } from '../../../settings/members.ts'
import { json, problem, type ApiCall, type ApiRoute } from './api-route.ts'

const PATH = '/api/v1/members'
/** A member, without the `server.` of a line of the configuration. A change has one, so a comma and a line break stand in none. */
const MEMBER = /^\d{1,9}=[^,\s]+$/
/** Longest text of a member. */
const MAX_MEMBER = 1024
/** The version -1, which Apache ZooKeeper takes for any, is not among them. */
const VERSION = /^0x[0-7]?[\da-f]{1,15}$/
const VERSION_SCHEMA = { type: 'string', pattern: '^0x[0-7]?[0-9a-f]{1,15}$' }

/** The operations on the members of an ensemble. */
export const memberRoutes: readonly ApiRoute[] = [
  {
    path: PATH,
    method: 'GET',
    role: 'view',
    summary:
      'Lists the members by the configuration in force, with its version, the voters and their quorum.',
    statuses: [200, 409],
    run: ({ target: { configuration } }) =>
      configuration === undefined ? standalone() : json(200, describe(configuration)),
  },
  {
    path: PATH,
    method: 'POST',
    role: 'admin',
    summary:
      'Adds a `member`, such as 4=zk4:2888:3888:observer;2181, or changes the addresses or the role of one. Answers with the members once a quorum has committed the change; with `dryRun` says what would follow. With `version`, nothing is changed where the members have another one.',
    body: {
      member: { type: 'string', maxLength: MAX_MEMBER, pattern: '^[0-9]{1,9}=[^,\\s]+$' },
      version: VERSION_SCHEMA,
      dryRun: { type: 'boolean', default: false },
    },
    requires: ['member'],
    statuses: [200, 400, 409, 503, 504],
    run: add,
  },
  {
    path: `${PATH}/{member}`,
    method: 'DELETE',
    role: 'admin',
    summary:
      'Removes a member. Answers with the members once a quorum has committed the change; with `dryRun` says what would follow. With `version`, nothing is changed where the members have another one.',
    query: { dryRun: { type: 'boolean', default: false }, version: VERSION_SCHEMA },
    statuses: [200, 400, 404, 409, 503, 504],
    run: remove,
  },
]

interface Change {
  readonly joining?: string
  readonly leaving?: string
  /** Only where the members have this version. */
  readonly version?: string | undefined
  readonly isDryRun: boolean
}

async function add(call: ApiCall): Promise<HttpResponse> {
  const { member, version, dryRun = false } = (await call.readBody()) ?? {}
  const isMember = typeof member === 'string' && member.length <= MAX_MEMBER && MEMBER.test(member)
  if (!isMember || !isVersion(version) || typeof dryRun !== 'boolean')
    return problem(
      400,
      'The body is not understood',
      'Expected {"member": "4=zk4:2888:3888:observer;2181", "version": "0x…", "dryRun": true}, of which only member is needed.',
    )
  return change(call, { joining: `server.${member}`, version, isDryRun: dryRun })
}

async function remove(call: ApiCall): Promise<HttpResponse> {
  const { query } = call.request
  const [version, dryRun] = [query.get('version') ?? undefined, query.get('dryRun') ?? 'false']
  if (!isVersion(version) || !/^(?:true|false)$/.test(dryRun))
    return problem(
      400,
      'The query is not understood',
      'Expected version=0x… and dryRun=true or false, or none.',
    )
  return change(call, { leaving: String(call.member), version, isDryRun: dryRun === 'true' })
}

const isVersion = (version: unknown): version is string | undefined =>
  version === undefined || (typeof version === 'string' && VERSION.test(version))

async function change(call: ApiCall, { joining, leaving, version, isDryRun }: Change): Promise<HttpResponse> {
  const { configuration, settings, service } = call.target
  if (configuration === undefined) return standalone()
  if (!settings.reconfigEnabled) return disabled('this server')
  if (leaving !== undefined && !configuration.members.has(call.member))
    return problem(404, 'There is no such member', `The members are ${idsOf(configuration)}.`)
  const lists = { joiningServers: joining ?? null, leavingServers: leaving ?? null, newMembers: null }
  let next: EnsembleConfiguration
  try {
    next = applyReconfig(configuration, lists, {
      version: configuration.version,
      minVoters: fewestVoters(settings),
    })
  } catch (error) {
    if (!(error instanceof ReconfigurationError)) throw error
    const isHierarchical = configuration.hierarchy !== undefined
    const advice = isHierarchical ? ' Use reconfig of zabra shell.' : ''
    return problem(
      joining === undefined || isHierarchical ? 409 : 400,
      'The members cannot be changed so',
      `${error.message}${advice}`,
    )
  }
  if (isDryRun)
    return version === undefined || BigInt(version) === BigInt(configuration.version)
      ? json(200, describe(next))
      : otherVersion()
  if (service === undefined)
    return problem(
      503,
      'The members cannot be changed now',
      `This server serves no clients: it is ${call.target.role}. Ask another member, or this one when /readyz answers 200.`,
    )
  const request = { ...lists, curConfigId: version === undefined ? -1n : BigInt(version) }
  return describeResult(await service.memberChanges.change(request, call.caller()))
}

function describeResult(result: MemberChangeResult): HttpResponse {
  if ('configuration' in result) return json(200, describe(parseConfiguration(result.configuration)))
  if ('unavailable' in result)
    return problem(503, 'The members cannot be changed now', `Try again later: ${result.unavailable}.`)
  if ('unknown' in result)
    return problem(
      504,
      'It is not known whether the members are changed',
      `No outcome came: ${result.unknown}. Look at zabra member list before you try again.`,
    )
  return describeRefusal(result.err)
}

/** Says what to do about the error number with which a leader, also one that runs Apache ZooKeeper, has refused a change. */
function describeRefusal(err: number): HttpResponse {
  switch (err) {
    case ErrorCode.RECONFIGDISABLED:
      return disabled('the leader')
    case ErrorCode.BADVERSION:
      return otherVersion()
    case ErrorCode.NEWCONFIGNOQUORUM:
      return problem(
        409,
        'The voters that would be are no quorum yet',
        'Some do not run, or lack data. Wait until zabra cluster status shows them with the zxid of the others, then run this again. Observers do not count: the second member of an ensemble of one is added as a voter.',
      )
    case ErrorCode.RECONFIGINPROGRESS:
      return problem(
        409,
        'Another change of the members is under way',
        'Look at zabra member list once it is committed, then try again.',
      )
    case ErrorCode.BADARGUMENTS:
      return problem(400, 'The leader refuses the change', 'The log of the leader gives the reason.')
    case ErrorCode.NOAUTH:
      return problem(
        409,
        'The leader does not believe this server',
        'No configuration names it, and it has not proved its id. Ask a member.',
      )
    default:
      return problem(
        503,
        'The members cannot be changed now',
        `The leader refuses it (${errorName(err)}): ${errors.get(err)?.meaning ?? 'an unknown error.'} Try again later.`,
      )
  }
}

const standalone = (): HttpResponse =>
  problem(
    409,
    'The server is a standalone one',
    'It has no members. With standaloneEnabled=false and its server.N line it is an ensemble of one, to which others can be added.',
  )

const disabled = (where: string): HttpResponse =>
  problem(
    409,
    'Changes of the members are disabled',
    `Set reconfigEnabled=true on all members, one restart after the other: it is false on ${where}.`,
  )

const otherVersion = (): HttpResponse =>
  problem(
    409,
    'The members have another version',
    'They were changed meanwhile. Look at zabra member list, then try again with its version.',
  )

function describe(configuration: EnsembleConfiguration): object {
  const { version, members, hierarchy } = configuration
  const voters = votersOf(configuration)
  return {
    version: `0x${formatZxid(version)}`,
    members: [...members.values()].map(describeMember),
    voters,
    // With groups or weights it depends on which voters there are.
    quorum: hierarchy === undefined ? Math.floor(voters.length / 2) + 1 : null,
  }
}

const describeMember = (member: MemberConfiguration): object => ({
  id: member.id,
  role: member.role,
  addresses: member.addresses,
  client: member.client ?? null,
  // As a change takes it.
  member: formatMember(member),
})

const idsOf = ({ members }: EnsembleConfiguration): string => [...members.keys()].join(', ')
