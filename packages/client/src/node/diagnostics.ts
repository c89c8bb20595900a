import { channel, tracingChannel } from '@zabra/runtime/node'
import type { Instrumentation, RequestInfo } from '../types.ts'

/** What the tracing channel `zookeeper:request` carries for one request, from its start to its end. */
export interface RequestContext extends RequestInfo {
  error?: Error
  /** The transaction that the server told with its answer. */
  zxid?: bigint
  /** Bytes of the answer. */
  answerBytes?: number
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
  return ({ error, bytes, zxid }) => {
    context.answerBytes = bytes
    if (zxid !== undefined) context.zxid = zxid
    if (error !== undefined) {
      context.error = error
      requests.error.publish(context)
    }
    requests.asyncStart.publish(context)
    requests.asyncEnd.publish(context)
  }
}

/**
 * Publishes to the channels of `node:diagnostics_channel` and passes everything on to `next`. While a channel has no
 * subscribers nothing is built for it.
 */
export function published(next: Instrumentation | undefined): Instrumentation {
  return {
    // Asked for before each request, so that one without listeners costs this look and no more.
    get request(): NonNullable<Instrumentation['request']> | undefined {
      if (!requests.hasSubscribers) return next?.request && ((info) => next.request?.(info))
      return (info) => {
        const own = traceRequest(info)
        const other = next?.request?.(info)
        return (end) => {
          own?.(end)
          other?.(end)
        }
      }
    },
    state(change) {
      if (states.hasSubscribers) states.publish(change)
      next?.state?.(change)
    },
    attempt(info) {
      if (attempts.hasSubscribers) attempts.publish(info)
      next?.attempt?.(info)
    },
    event(info) {
      if (events.hasSubscribers) events.publish(info)
      next?.event?.(info)
    },
    recipe(info) {
      if (recipes.hasSubscribers) recipes.publish(info)
      next?.recipe?.(info)
    },
    stall(lateMs) {
      if (stalls.hasSubscribers) stalls.publish({ lateMs })
      next?.stall?.(lateMs)
    },
  } as Instrumentation
}
