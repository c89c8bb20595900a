import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import type { History, Operation } from 'zabra-simulator'
import { scratch } from '../harness/servers.ts'
import { isRegister, LOCKS, REGISTERS, SET } from './workload.ts'

/** An operation as `porcupine/main.go` reads it. Times are in microseconds. */
interface Judged {
  readonly client: number
  readonly call: number
  readonly return: number
  readonly op: 'create' | 'set' | 'delete' | 'get' | 'add' | 'remove' | 'members' | 'apply'
  readonly path: string
  readonly value?: string
  readonly version?: number
  readonly index?: number
  readonly err?: number
  readonly unknown?: boolean
  readonly got?: string
  readonly gotVersion?: number
  readonly members?: readonly string[]
}

interface JudgedHistory {
  readonly name: string
  readonly model: 'node' | 'set' | 'session'
  readonly operations: readonly Judged[]
  readonly writes?: readonly { readonly path: string; readonly value: string }[]
}

export type Verdict = 'Ok' | 'Illegal' | 'Unknown'

/** Checks histories of objects for linearizability and those of sessions for sequential consistency. */
export class Porcupine {
  readonly #program: string

  private constructor(program: string) {
    this.#program = program
  }

  /** Builds the checker. Throws with the output of `go` when that fails. */
  static build(): Porcupine {
    const program = join(scratch('porcupine'), 'check')
    const cwd = join(import.meta.dirname, 'porcupine')
    const { status, stderr } = spawnSync('go', ['build', '-o', program, '.'], { cwd, encoding: 'utf8' })
    if (status !== 0) throw new Error(`go build failed: ${stderr}`)
    return new Porcupine(program)
  }

  /** Returns the verdict on each register, lock, set and session of a history. */
  check(history: History): ReadonlyMap<string, Verdict> {
    const input = JSON.stringify([...objectsOf(history), ...sessionsOf(history)])
    const options = { input, encoding: 'utf8', maxBuffer: 1 << 26 } as const
    const { status, stdout, stderr } = spawnSync(this.#program, options)
    if (status !== 0) throw new Error(`The checker failed: ${stderr}`)
    return new Map(Object.entries(JSON.parse(stdout) as Record<string, Verdict>))
  }
}

const micros = (ms: number): number => Math.round(ms * 1000)
const END = Number.MAX_SAFE_INTEGER

/** Returns common fields; a request without a reply may have taken effect at any time after it was sent. */
function common({ client, invoked, returned, outcome, result }: Operation) {
  const unknown = outcome !== 'answered' || result.err === -4
  return {
    client: Number(client.slice(1)),
    call: micros(invoked),
    return: unknown ? END : micros(returned),
    err: unknown ? 0 : result.err,
    unknown,
  }
}

/** Returns the reads that follow a sync on their connection, by their operation, with the time at which the sync was sent. */
function syncedReads(history: History): Map<Operation, number> {
  const synced = new Map<Operation, number>()
  const last = new Map<number, Operation>()
  for (const operation of history.operations) {
    const before = last.get(operation.connection)
    last.set(operation.connection, operation)
    if (before?.request.op === 'sync' && before.result.err === 0 && operation.outcome === 'answered')
      synced.set(operation, before.invoked)
  }
  return synced
}

function objectsOf(history: History): JudgedHistory[] {
  const synced = syncedReads(history)
  const nodes = new Map<string, Judged[]>([...REGISTERS, ...LOCKS].map((path) => [path, []]))
  const set: Judged[] = []
  for (const operation of history.operations) {
    const { request, result } = operation
    if (!('path' in request)) continue
    const { path } = request
    const base = { ...common(operation), path }
    const node = nodes.get(path)
    const call = synced.get(operation)
    const read = call === undefined ? undefined : { ...base, call: micros(call) }
    if (request.op === 'set')
      node?.push({
        ...base,
        op: 'set',
        value: request.data,
        version: request.version,
        gotVersion: result.stat?.version ?? 0,
      })
    else if (request.op === 'create' && node !== undefined)
      node.push({ ...base, op: 'create', value: request.data })
    else if (request.op === 'delete' && node !== undefined)
      node.push({ ...base, op: 'delete', version: request.version })
    else if (request.op === 'get' && read !== undefined)
      node?.push({ ...read, op: 'get', got: result.data ?? '', gotVersion: result.stat?.version ?? 0 })
    else if (request.op === 'children' && path === SET && read !== undefined)
      set.push({ ...read, op: 'members', members: result.children ?? [] })
    else if (path.startsWith(`${SET}/`))
      set.push({
        ...base,
        op: request.op === 'create' ? 'add' : 'remove',
        value: path.slice(SET.length + 1),
      })
  }
  return [
    ...[...nodes].map(([name, operations]) => ({ name, model: 'node' as const, operations })),
    { name: SET, model: 'set', operations: set },
  ]
}

/**
 * Returns the registers as each session saw them: its own writes and all of its reads in their order, and the writes of others,
 * which may be applied at any time after they were sent, in the order of their zxids.
 */
function sessionsOf(history: History): JudgedHistory[] {
  const registers = history.operations.filter(({ request }) => 'path' in request && isRegister(request.path))
  // A write without a reply has a place only if a read shows its value.
  const seen = new Map<string, number>()
  for (const { request, result } of registers)
    if (request.op === 'get' && result.data !== undefined) seen.set(result.data, result.stat!.mzxid)
  const writes = registers.flatMap((operation) => {
    const { request, outcome, result, zxid } = operation
    if (request.op !== 'set') return []
    const at = outcome === 'answered' ? (result.err === 0 ? zxid : undefined) : seen.get(request.data)
    return at === undefined ? [] : [{ operation, zxid: at, path: request.path, value: request.data }]
  })
  writes.sort((a, b) => a.zxid - b.zxid)
  const sessions = new Set(registers.map(({ session }) => session))
  return [...sessions].map((session) => {
    const applied = writes.map(({ operation, path }, index): Judged => {
      const isOwn = operation.session === session && operation.outcome === 'answered'
      const { client, call, return: end } = common(operation)
      return { client, call, return: isOwn ? end : END, op: 'apply', path, index }
    })
    const reads = registers
      .filter((one) => one.session === session && one.request.op === 'get' && one.outcome === 'answered')
      .filter(({ result }) => result.err === 0)
      .map((one): Judged => {
        const path = (one.request as { path: string }).path
        return { ...common(one), op: 'get', path, got: one.result.data! }
      })
    return {
      name: `session ${session}`,
      model: 'session' as const,
      operations: [...applied, ...reads],
      writes: writes.map(({ path, value }) => ({ path, value })),
    }
  })
}
