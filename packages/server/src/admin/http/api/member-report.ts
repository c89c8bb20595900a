import { formatZxid } from '@zabra/protocol'
import type { DiskSpace, OwnCertificate } from '@zabra/runtime'
import { MAX_REPORT_BYTES } from '../../../core/zab/index.ts'
import { FULL_VERSION } from '../../../version.ts'
import type { AdminTarget } from '../../admin-target.ts'
import type { DiskFigures, DiskReport } from '../disk-figures.ts'
import { readiness } from '../health.ts'
import { memberFindings, type MemberFinding } from './member-findings.ts'

/** The most checks, and the most findings, in a report. */
export const MAX_ENTRIES = 16
/** The longest texts, in characters. `SHORT_TEXT` is that of texts in a report that would be too long otherwise. */
export const MAX_TEXT = 200
const SHORT_TEXT = 40

/** What a server says of itself, to every member of its ensemble. */
export interface MemberReport {
  /** The role that it serves clients in, else what it does: `leader`, `follower`, `observer`, `standalone`, `read-only`, `looking`, … */
  readonly state: string
  /** The last applied transaction, in hexadecimal; null while it serves no clients. */
  readonly zxid: string | null
  /** Committed transactions that it knows of and has not applied. */
  readonly zxidLag: number
  readonly softwareVersion: string
  readonly featureLevel: number
  readonly finalizedLevel: number
  readonly uptimeMs: number
  readonly ready: boolean
  /** The checks of readiness. */
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[]
  readonly draining: boolean
  /** How long it holds a permit to stop, in milliseconds. */
  readonly stopPermitMs: number
  /** Of the folders of snapshots and logs, in bytes; null where the disk has not said so in time. */
  readonly disk: { readonly data: DiskSpace | null; readonly log: DiskSpace | null }
  /** When the certificates end, in the form of ISO 8601; null without one. */
  readonly certificates: {
    readonly client: string | null
    readonly quorum: string | null
    readonly http: string | null
  }
  readonly connections: number
  readonly sessions: number
  readonly watches: number
  readonly znodes: number
  /** In bytes; null without a limit. */
  readonly memory: { readonly used: number; readonly limit: number | null }
  readonly findings: readonly MemberFinding[]
}

/** Makes the reports of a server about itself. */
export class OwnReport {
  readonly #disk: DiskFigures
  readonly #certificate: () => OwnCertificate | undefined

  /** `certificate` returns that of the HTTP port. */
  constructor(disk: DiskFigures, certificate: () => OwnCertificate | undefined) {
    this.#disk = disk
    this.#certificate = certificate
  }

  async make(target: AdminTarget): Promise<MemberReport> {
    const disk = await this.#disk.next(target.directories)
    return reportOf(target, disk, { ...target.certificates, http: this.#certificate() })
  }
}

function reportOf(
  target: AdminTarget,
  figures: DiskReport | undefined,
  certificates: Readonly<Record<'client' | 'quorum' | 'http', OwnCertificate | undefined>>,
): MemberReport {
  const { service, role, features, platform, directories } = target
  const { clock, system } = platform
  const { isReady, checks } = readiness(target)
  const limit = system.memoryLimits?.().process ?? Infinity
  const disk = {
    data: figures?.spaces.get(directories.snapshots) ?? null,
    log: figures?.spaces.get(directories.logs) ?? null,
  }
  return {
    state: service?.role.mode ?? role,
    zxid: service === undefined ? null : `0x${formatZxid(service.tree.lastZxid)}`,
    zxidLag: target.zxidLag,
    softwareVersion: FULL_VERSION,
    featureLevel: features.release,
    finalizedLevel: features.finalized,
    uptimeMs: Math.floor(clock.monotonic() - target.startedAt),
    ready: isReady,
    checks: checks.map(({ name, isOk, detail }) => ({ name, ok: isOk, detail })),
    draining: target.isDraining,
    stopPermitMs: target.stopPermitMs,
    disk,
    certificates: {
      client: endOf(certificates.client),
      quorum: endOf(certificates.quorum),
      http: endOf(certificates.http),
    },
    connections: service?.connections.size ?? 0,
    sessions: service?.sessions.size ?? 0,
    watches: service?.watches.size ?? 0,
    znodes: service?.tree.nodeCount ?? 0,
    memory: { used: system.residentMemory(), limit: limit === Infinity ? null : limit },
    findings: memberFindings(target, disk, certificates),
  }
}

const endOf = (certificate: OwnCertificate | undefined): string | null =>
  certificate === undefined ? null : new Date(certificate.validUntil).toISOString()

/** Returns the reasons why a member is not ready, on one line; null where it is, or has not said. */
export function notReady({ ready, checks }: Pick<ReceivedReport, 'ready' | 'checks'>): string | null {
  if (ready !== false) return null
  const failed = (checks ?? []).filter(({ ok }) => !ok)
  return failed.length === 0 ? 'not ready' : failed.map(({ name, detail }) => `${name}: ${detail}`).join('; ')
}

// Between members

/** Encodes a report for other members, in JSON of at most 8 KiB. Long texts are cut. */
export function encodeReport(report: MemberReport): Uint8Array {
  const encoder = new TextEncoder()
  const bytes = encoder.encode(JSON.stringify(shortened(report, MAX_TEXT)))
  return bytes.length <= MAX_REPORT_BYTES
    ? bytes
    : encoder.encode(JSON.stringify(shortened(report, SHORT_TEXT)))
}

function shortened(report: MemberReport, length: number): MemberReport {
  const cut = (text: string): string => text.replace(/\p{Cc}/gu, ' ').slice(0, length)
  const rest = ({ detail, ...fields }: { readonly detail: string }) => ({ ...fields, detail: cut(detail) })
  return {
    ...report,
    checks: report.checks.slice(0, MAX_ENTRIES).map((entry) => ({ ...entry, ...rest(entry) })),
    findings: report.findings.slice(0, MAX_ENTRIES).map((entry) => ({ ...entry, ...rest(entry) })),
  }
}

/** A report of another member, in which a field that it does not have, or that is wrong, is null. */
export type ReceivedReport = { readonly [Field in keyof MemberReport]: MemberReport[Field] | null }

/** Reads a value of another machine; returns undefined for one that is not as expected. */
type Read<T> = (value: unknown) => T | undefined

const count: Read<number> = (value) =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
const flag: Read<boolean> = (value) => (typeof value === 'boolean' ? value : undefined)
const text: Read<string> = (value) =>
  typeof value === 'string' && value.length <= MAX_TEXT && !/\p{Cc}/u.test(value) ? value : undefined
const zxid: Read<string> = (value) =>
  typeof value === 'string' && /^0x[\da-f]{1,16}$/.test(value) ? value : undefined
const time: Read<string> = (value) =>
  typeof value === 'string' &&
  /^\+?\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value) &&
  !Number.isNaN(Date.parse(value))
    ? value
    : undefined
const orNull =
  <T>(read: Read<T>): Read<T | null> =>
  (value) =>
    value === null ? null : read(value)
const listOf =
  <T>(read: Read<T>): Read<readonly T[]> =>
  (value) => {
    if (!Array.isArray(value) || value.length > MAX_ENTRIES) return undefined
    const entries = value.map(read)
    return entries.includes(undefined) ? undefined : (entries as T[])
  }
const objectOf =
  <T extends object>(fields: { readonly [Field in keyof T]: Read<T[Field]> }): Read<T> =>
  (value) => {
    if (typeof value !== 'object' || value === null) return undefined
    const read = Object.entries<Read<unknown>>(fields).map(
      ([name, of]) => [name, of((value as Record<string, unknown>)[name])] as const,
    )
    return read.some(([, field]) => field === undefined) ? undefined : (Object.fromEntries(read) as T)
  }

const space = orNull(objectOf<DiskSpace>({ free: count, size: count }))

const fields: { readonly [Field in keyof MemberReport]: Read<MemberReport[Field]> } = {
  state: text,
  zxid: orNull(zxid),
  zxidLag: count,
  softwareVersion: text,
  featureLevel: count,
  finalizedLevel: count,
  uptimeMs: count,
  ready: flag,
  checks: listOf(objectOf({ name: text, ok: flag, detail: text })),
  draining: flag,
  stopPermitMs: count,
  disk: objectOf({ data: space, log: space }),
  certificates: objectOf({ client: orNull(time), quorum: orNull(time), http: orNull(time) }),
  connections: count,
  sessions: count,
  watches: count,
  znodes: count,
  memory: objectOf({ used: count, limit: orNull(count) }),
  findings: listOf(objectOf({ id: text, detail: text })),
}

/** A report without anything in it. */
export const EMPTY_REPORT = Object.fromEntries(
  Object.keys(fields).map((name) => [name, null]),
) as unknown as ReceivedReport

/**
 * Reads the report of another member, field by field: a wrong one is null, and named in `problem`. Releases may have more fields, or
 * fewer. Never throws.
 */
export function decodeReport(bytes: Uint8Array): {
  readonly report: ReceivedReport
  readonly problem: string | null
} {
  const given = parsed(bytes)
  if (given === undefined)
    return {
      report: EMPTY_REPORT,
      problem: `its report is not understood: expected a JSON object, got ${bytes.length} bytes of something else`,
    }
  const wrong: string[] = []
  const read = Object.entries<Read<unknown>>(fields).map(([name, of]) => {
    const value = Object.hasOwn(given, name) ? of(given[name]) : null
    if (value === undefined) wrong.push(name)
    return [name, value ?? null]
  })
  return {
    report: Object.fromEntries(read) as ReceivedReport,
    problem: wrong.length === 0 ? null : `its report is wrong in ${wrong.join(', ')}`,
  }
}

function parsed(bytes: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    // The caller says what was expected.
    return undefined
  }
}
