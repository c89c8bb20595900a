import type { Address, Platform } from '@zabra/runtime'
import { formatMember, type MemberConfiguration, type ServerId } from '../../../core/quorum/index.ts'
import type { AdminTarget } from '../../admin-target.ts'

/** Time for the answer of a member, in milliseconds. */
const TIMEOUT_MS = 2000
/** Time in which an answer is not asked for again. */
const FRESH_MS = 1000
/** Longest answer in bytes. */
const MAX_ANSWER_BYTES = 16 * 1024

/** What a member has answered to `srvr`. */
export interface MemberAnswer {
  readonly mode: string
  readonly zxid: string
  readonly version: string
  readonly connections: number
  readonly znodes: number
}

/** The last answer of a member, and why there is no newer one. */
export interface ProbedMember {
  readonly answer: MemberAnswer | undefined
  /** When the answer came, on the monotonic clock. */
  readonly answeredAt: number
  /** Why the last question got no answer; undefined when it got one. */
  readonly problem: string | undefined
}

/** Asks the other members of an ensemble for their state, by `srvr` on their client ports, which every ZooKeeper server answers. */
export class ClusterProbe {
  readonly #platform: Pick<Platform, 'network' | 'clock'>
  readonly #canBeChanged: boolean
  readonly #members = new Map<ServerId, ProbedMember & { readonly askedAt: number }>()
  readonly #running = new Map<ServerId, Promise<ProbedMember>>()

  /** `canBeChanged`: whether members can be changed while the ensemble runs (`reconfigEnabled`). */
  constructor(platform: Pick<Platform, 'network' | 'clock'>, canBeChanged: boolean) {
    this.#platform = platform
    this.#canBeChanged = canBeChanged
  }

  /** Asks a member, unless it was asked a moment ago. `clientPort` is that of members whose configuration names none. */
  async ask(member: MemberConfiguration, clientPort: number | undefined): Promise<ProbedMember> {
    const { id } = member
    const known = this.#members.get(id)
    if (known !== undefined && this.#now() - known.askedAt < FRESH_MS) return known
    const running =
      this.#running.get(id) ?? this.#probe(member, clientPort).finally(() => this.#running.delete(id))
    this.#running.set(id, running)
    return running
  }

  async #probe(member: MemberConfiguration, clientPort: number | undefined): Promise<ProbedMember> {
    const before = this.#members.get(member.id)
    const probed = await this.#question(member, addressOf(member, clientPort)).then(
      (answer) => ({ answer, answeredAt: this.#now(), problem: undefined }),
      (error: unknown) => ({
        answer: before?.answer,
        answeredAt: before?.answeredAt ?? 0,
        problem: error instanceof Error ? error.message : String(error),
      }),
    )
    this.#members.set(member.id, { ...probed, askedAt: this.#now() })
    return probed
  }

  async #question(member: MemberConfiguration, address: Address | undefined): Promise<MemberAnswer> {
    if (address === undefined) {
      // Where members can be changed, the configuration of the last change counts before the settings.
      const advice = this.#canBeChanged
        ? `give it one: zabra member add '${formatMember(member)};2181'`
        : `write it behind server.${member.id}, as in …;2181`
      throw new Error(`the configuration names no client address of it: ${advice}`)
    }
    const { network, clock } = this.#platform
    const timeout = new AbortController()
    const cancel = clock.after(TIMEOUT_MS, 'state of another member', () => timeout.abort())
    try {
      const connection = await network.connect(address, { signal: timeout.signal })
      return parseAnswer(
        await new Promise<string>((resolve, reject) => {
          const decoder = new TextDecoder()
          let text = ''
          timeout.signal.addEventListener('abort', () => {
            connection.destroy()
            reject(new Error(`${address.host}:${address.port} has not answered within ${TIMEOUT_MS} ms`))
          })
          connection.setHandler({
            data(chunk) {
              text += decoder.decode(chunk, { stream: true })
              if (text.length > MAX_ANSWER_BYTES) connection.destroy()
            },
            drain() {},
            closed: () => resolve(text),
          })
          connection.write(new TextEncoder().encode('srvr'))
        }),
        address,
      )
    } catch (error) {
      if (!timeout.signal.aborted) throw error
      throw new Error(`${address.host}:${address.port} has not answered within ${TIMEOUT_MS} ms`, {
        cause: error,
      })
    } finally {
      cancel()
    }
  }

  #now(): number {
    return this.#platform.clock.monotonic()
  }
}

/**
 * Returns the client port of a member whose configuration names none: that of this server. On the host of this server it is undefined,
 * since that port must not answer for another member.
 */
export function clientPortOf(
  { configuration, settings }: AdminTarget,
  member: MemberConfiguration,
): number | undefined {
  const ownHosts = hostsOf(configuration?.members.get(settings.serverId))
  return hostsOf(member).some((host) => ownHosts.includes(host)) ? undefined : settings.clientPort
}

const hostsOf = (member: MemberConfiguration | undefined): readonly string[] =>
  member?.addresses.map(({ host }) => host) ?? []

function addressOf(
  { client, addresses: [first] }: MemberConfiguration,
  clientPort: number | undefined,
): Address | undefined {
  if (client !== undefined && first !== undefined)
    return /^(?:0\.0\.0\.0|[0:]*)$/.test(client.host) ? { host: first.host, port: client.port } : client
  return first === undefined || clientPort === undefined ? undefined : { host: first.host, port: clientPort }
}

function parseAnswer(text: string, { host, port }: Address): MemberAnswer {
  const field = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, 'm').exec(text)?.[1]
  const mode = field('Mode')
  if (mode === undefined) {
    const line = text.split('\n', 1)[0]!.slice(0, 200)
    throw new Error(
      `${host}:${port} ${line === '' ? 'closed the connection without an answer' : `said: ${line}`}`,
    )
  }
  return {
    mode,
    zxid: field('Zxid') ?? '',
    version: field('Zookeeper version') ?? '',
    connections: Number(field('Connections') ?? 0),
    znodes: Number(field('Node count') ?? 0),
  }
}
