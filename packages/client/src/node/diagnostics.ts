import { channel, tracingChannel } from '@zabra/runtime/node/dial'
import type { Instrumentation, RequestInfo } from '../instrumentation.ts'
import { observeRequest } from '../session/observe.ts'
import type { StateChange, Zxid } from '../types.ts'

/** The context of one request on the tracing channel `zookeeper:request`. */
export interface RequestContext extends RequestInfo {
  error?: Error | undefined
  /** The zxid in the header of the reply. */
  zxid?: Zxid | undefined
  /** Length of the reply in bytes. */
  replyBytes?: number | undefined
}

const requests = tracingChannel<'', RequestContext>('zookeeper:request')
const states = channel('zookeeper:state')
const attempts = channel('zookeeper:attempt')
const events = channel('zookeeper:event')
const recipes = channel('zookeeper:recipe')
const stalls = channel('zookeeper:stall')

function traceRequest(info: RequestInfo): ReturnType<NonNullable<Instrumentation['request']>> {
  const context: RequestContext = { ...info }
  requests.start.publish(context)
  requests.end.publish(context)
  return ({ error, replyBytes, zxid }) => {
    context.replyBytes = replyBytes
    if (zxid !== undefined) context.zxid = zxid
    if (error !== undefined) {
      context.error = error
      requests.error.publish(context)
    }
    requests.asyncStart.publish(context)
    requests.asyncEnd.publish(context)
  }
}

const forward =
  (next: Instrumentation): NonNullable<Instrumentation['request']> =>
  (info) =>
    next.request?.(info)

const traceAndForward =
  (next: Instrumentation | undefined): NonNullable<Instrumentation['request']> =>
  (info) => {
    const own = traceRequest(info)
    // Subscribers that have seen the start see the end, whatever the hook of the user does.
    const other = next && observeRequest(next, () => info, undefined)
    return (end) => {
      own?.(end)
      other?.(end)
    }
  }

/**
 * Publishes to the channels of `node:diagnostics_channel` and forwards to the user's instrumentation. Builds no
 * message for a channel without subscribers. Returns what a hook returns, so that the rejection of an async one is handled.
 */
class DiagnosticsInstrumentation implements Instrumentation {
  readonly #next: Instrumentation | undefined

  constructor(next: Instrumentation | undefined) {
    this.#next = next
  }

  /** Read before each request, so that a request without subscribers costs one check. */
  get request(): NonNullable<Instrumentation['request']> {
    if (requests.hasSubscribers) return traceAndForward(this.#next)
    return (this.#next?.request === undefined ? undefined : forward(this.#next)) as never
  }

  state(change: StateChange): void {
    if (states.hasSubscribers) states.publish(change)
    return this.#next?.state?.(change)
  }

  attempt(info: { server: string; error: Error }): void {
    if (attempts.hasSubscribers) attempts.publish(info)
    return this.#next?.attempt?.(info)
  }

  event(info: { type: string; path?: string; watchers: number }): void {
    if (events.hasSubscribers) events.publish(info)
    return this.#next?.event?.(info)
  }

  recipe(info: { recipe: string; path: string; phase: string; waitedMs?: number }): void {
    if (recipes.hasSubscribers) recipes.publish(info)
    return this.#next?.recipe?.(info)
  }

  stall(lateMs: number): void {
    if (stalls.hasSubscribers) stalls.publish({ lateMs })
    return this.#next?.stall?.(lateMs)
  }
}

/** Returns instrumentation that publishes and forwards to that of the user. */
export const withDiagnostics = (next: Instrumentation | undefined): Instrumentation =>
  next === undefined ? diagnosticsOnly : new DiagnosticsInstrumentation(next)

const diagnosticsOnly = new DiagnosticsInstrumentation(undefined)
