import { UsageError, type Bytes, type Codec } from '@zabra/client/core'
import { shown } from '@zabra/client/recipe-kit'

/**
 * How long a registration lasts. `DYNAMIC`: as long as its owner lives. `DYNAMIC_SEQUENTIAL`: the same, with a
 * number from the server. `STATIC`: until it is unregistered or its owner is closed. `PERMANENT`: until it is
 * unregistered.
 */
export const serviceTypes = ['DYNAMIC', 'STATIC', 'PERMANENT', 'DYNAMIC_SEQUENTIAL'] as const
export type ServiceType = (typeof serviceTypes)[number]

/** How the address of an instance is composed, in Curator's format. */
export interface UriSpec {
  readonly parts: readonly { readonly value: string; readonly variable: boolean }[]
}

/** An instance of a service. */
export interface Instance<T = unknown> {
  /** Name of the service. */
  readonly name: string
  /** Id of the instance, unique within its service. */
  readonly id: string
  /** Host name or IP address. */
  readonly address?: string | undefined
  readonly port?: number | undefined
  readonly sslPort?: number | undefined
  readonly payload?: T | undefined
  /** Milliseconds since 1970, by the clock of the registering client. */
  readonly registrationTimeUTC: number
  readonly serviceType: ServiceType
  readonly uriSpec?: UriSpec | undefined
  /** Providers skip disabled instances (default true). */
  readonly enabled: boolean
}

/** Input of a registration. Defaults: a random id, the current time, `DYNAMIC`, enabled. */
export type NewInstance<T = unknown> = Pick<Instance<T>, 'name'> & Partial<Omit<Instance<T>, 'name'>>

/** Converts payloads to JSON and back; `decode` throws for invalid JSON values. */
export interface PayloadCodec<T> {
  encode(payload: T): unknown
  decode(json: unknown): T
}

/** The JSON format of Curator's service discovery: all ten fields, null for missing ones. */
export const instanceCodec = <T>(payloads: PayloadCodec<T>): Codec<Instance<T>> => ({
  encode(instance) {
    checkFields(new Map(Object.entries(instance)))
    const { address = null, port = null, sslPort = null, payload, uriSpec = null } = instance
    const { name, id, registrationTimeUTC, serviceType, enabled } = instance
    const content = payload === undefined ? null : payloads.encode(payload)
    const parts = { name, id, address, port, sslPort, payload: content }
    return new TextEncoder().encode(
      JSON.stringify({ ...parts, registrationTimeUTC, serviceType, uriSpec, enabled }),
    )
  },
  decode: (data) => decode(data, payloads),
})

function decode<T>(data: Bytes, payloads: PayloadCodec<T>): Instance<T> {
  const json: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(data))
  if (typeof json !== 'object' || json === null) throw wrong('a JSON object', json)
  const fields = new Map(Object.entries(json))
  const payload = fields.get('payload') ?? undefined
  return {
    ...checkFields(fields),
    payload: payload === undefined ? undefined : payloads.decode(payload),
  }
}

/** Returns the fields of an instance. Throws a `UsageError` for one of the wrong kind. */
export const checkFields = (fields: Fields): Omit<Instance, 'payload'> => ({
  name: required(fields, 'name'),
  id: required(fields, 'id'),
  address: text(fields, 'address'),
  port: number(fields, 'port'),
  sslPort: number(fields, 'sslPort'),
  registrationTimeUTC: number(fields, 'registrationTimeUTC') ?? 0,
  serviceType: typeOf(fields.get('serviceType')),
  uriSpec: uriSpecOf(fields.get('uriSpec')),
  enabled: enabledOf(fields.get('enabled')),
})

type Fields = ReadonlyMap<string, unknown>

const wrong = (expected: string, got: unknown): UsageError =>
  new UsageError(`Expected ${expected} in a service instance, got ${shown(got)}`)

function required(fields: Fields, key: string): string {
  const value = text(fields, key)
  if (value === undefined) throw wrong(`a text as ${key}`, value)
  return value
}

function text(fields: Fields, key: string): string | undefined {
  const value = fields.get(key) ?? undefined
  if (value !== undefined && typeof value !== 'string') throw wrong(`a text as ${key}`, value)
  return value
}

function number(fields: Fields, key: string): number | undefined {
  const value = fields.get(key) ?? undefined
  if (value !== undefined && !Number.isFinite(value)) throw wrong(`a number as ${key}`, value)
  return value as number | undefined
}

function enabledOf(value: unknown): boolean {
  // Instances written by versions without this field are enabled.
  if (value === undefined || value === null) return true
  if (typeof value !== 'boolean') throw wrong('true or false as enabled', value)
  return value
}

function typeOf(value: unknown): ServiceType {
  const type = serviceTypes.find((each) => each === value)
  if (type === undefined && value !== undefined && value !== null)
    throw wrong(`one of ${serviceTypes.join(', ')}`, value)
  return type ?? 'DYNAMIC'
}

function uriSpecOf(value: unknown): UriSpec | undefined {
  if (value === undefined || value === null) return undefined
  const { parts } = value as { parts?: unknown }
  if (!Array.isArray(parts)) throw wrong('parts in uriSpec', value)
  return {
    parts: parts.map((part: { value?: unknown; variable?: unknown } | null) => {
      if (typeof part?.value !== 'string') throw wrong('a value in each part of uriSpec', part)
      return { value: part.value, variable: part.variable === true }
    }),
  }
}
