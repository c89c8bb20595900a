/**
 * OpenTelemetry spans and metrics for the option `instrumentation`. Needs `@opentelemetry/api`, an optional peer
 * dependency.
 */
import { metrics, SpanKind, SpanStatusCode, trace, type Meter, type Tracer } from '@opentelemetry/api'
import { checkOptionsOf, trueOrFalse, withMethods, type Rule } from './checks.ts'
import type { Instrumentation } from './instrumentation.ts'

export interface OpenTelemetryOptions {
  /** Default: the tracer of the global provider. */
  readonly tracer?: Tracer | undefined
  /** Default: the meter of the global provider. */
  readonly meter?: Meter | undefined
  /** Leaves paths out of spans: they may contain customer names. Metrics never contain paths. */
  readonly withoutPaths?: boolean | undefined
}

const NAME = '@zabra/client'

const rules: { readonly [K in keyof Required<OpenTelemetryOptions>]: Rule } = {
  tracer: ['a tracer of OpenTelemetry', withMethods('startSpan')],
  meter: ['a meter of OpenTelemetry', withMethods('createHistogram')],
  withoutPaths: trueOrFalse,
}

/**
 * Returns instrumentation; one object may serve many clients. Names follow the semantic conventions for database
 * clients.
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Instrumentation {
  checkOptionsOf('openTelemetry', options, rules)
  const { tracer = trace.getTracer(NAME), meter = metrics.getMeter(NAME), withoutPaths = false } = options
  const duration = meter.createHistogram('db.client.operation.duration', {
    unit: 's',
    description: 'Time from the call to the reply',
  })
  const pending = meter.createUpDownCounter('zookeeper.client.requests.pending', {
    description: 'Requests without a reply yet',
  })
  const changes = meter.createCounter('zookeeper.client.state.changes', {
    description: 'Changes of the connection state',
  })
  const events = meter.createCounter('zookeeper.client.events', { description: 'Watch events' })
  const failures = meter.createCounter('zookeeper.client.attempts.failed', {
    description: 'Failed connection attempts',
  })
  const stalls = meter.createHistogram('zookeeper.client.stall', {
    unit: 'ms',
    description: 'How late a timer fired because the event loop was blocked',
  })
  const waits = meter.createHistogram('zookeeper.recipe.wait', { unit: 'ms' })
  return {
    request({ operation, path, server }) {
      const attributes = { 'db.system.name': 'zookeeper', 'db.operation.name': operation }
      const span = tracer.startSpan(`zookeeper ${operation}`, {
        kind: SpanKind.CLIENT,
        attributes: {
          ...attributes,
          ...(path === undefined || withoutPaths ? {} : { 'zookeeper.path': path }),
          ...(server === undefined ? {} : addressOf(server)),
        },
      })
      const began = performance.now()
      pending.add(1)
      return ({ error, zxid }) => {
        pending.add(-1)
        const outcome = error === undefined ? {} : { 'error.type': error.code }
        duration.record((performance.now() - began) / 1000, { ...attributes, ...outcome })
        if (zxid !== undefined)
          span.setAttribute('zookeeper.zxid', `0x${BigInt.asUintN(64, zxid).toString(16)}`)
        if (error !== undefined) {
          span.setAttribute('error.type', error.code)
          span.setStatus({ code: SpanStatusCode.ERROR, message: withoutPaths ? error.code : error.message })
        }
        span.end()
      }
    },
    state: ({ state }) => changes.add(1, { 'zookeeper.state': state }),
    attempt: ({ server }) => failures.add(1, addressOf(server)),
    event: ({ type }) => events.add(1, { 'zookeeper.event': type }),
    stall: (lateMs) => stalls.record(lateMs),
    recipe: ({ recipe, phase, waitedMs }) => {
      if (waitedMs !== undefined)
        waits.record(waitedMs, { 'zookeeper.recipe': recipe, 'zookeeper.phase': phase })
    },
  }
}

/** Returns the attributes of a server, given as `Client.server` is. */
function addressOf(server: string): { 'server.address': string; 'server.port': number } {
  const [, scheme, literal, name = '', port = scheme === 'wss' ? 443 : 80] =
    /^(\w+):\/\/(?:[^/@]*@)?(?:\[([^\]]*)\]|([^:/]*))(?::(\d+))?/.exec(server) ?? []
  return { 'server.address': literal ?? name, 'server.port': Number(port) }
}
