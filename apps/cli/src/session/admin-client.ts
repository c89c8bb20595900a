import { readFileSync } from 'node:fs'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { tlsFailureOf, type CertificateStore } from '@zabra/runtime'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import type { SessionOptions } from './open.ts'
import { adviceForFault } from './tls-advice.ts'

/** Where the HTTP port of a server is by default. */
const DEFAULT_URL = 'http://127.0.0.1:8080'
/** Longest answer that is read as a whole, in bytes. */
const MAX_ANSWER_BYTES = 16 << 20
/** Limits of an answer. */
const ANSWER: AnswerLimit = { bytes: MAX_ANSWER_BYTES, ms: 60_000 }
/** For streams: the caller bounds what it keeps of them. */
export const NO_LIMIT: AnswerLimit = { bytes: Infinity, ms: Infinity }

export interface AnswerLimit {
  readonly bytes: number
  /** Time from the begin to the end of the answer, in milliseconds; that of `--timeout` where it is longer. */
  readonly ms: number
}

export interface AdminOptions extends Pick<SessionOptions, 'auth' | 'login' | 'timeoutMs'> {
  readonly token?: string
  /** Certificates, for `https`. */
  readonly tls: {
    readonly trustStore?: CertificateStore | undefined
    readonly keyStore?: CertificateStore | undefined
  }
}

/** A response whose body is read by the caller. */
export interface AdminResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Throws a `Failure` when the connection is lost before the end. */
  readonly chunks: AsyncIterable<Uint8Array>
}

export type AdminMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface AdminRequest {
  /** Sent as JSON. */
  readonly body?: object
  /** Sent as it is, instead of `body`. */
  readonly content?: { readonly bytes: number; readonly chunks: AsyncIterable<Uint8Array> }
  /** Statuses of answers that the caller reads; others reject with a `Failure`. */
  readonly accepts?: readonly number[]
  /** Time without a byte of an answer that has begun, after which it counts as lost, in milliseconds; that of `--timeout` by default. */
  readonly silentMs?: number
  /** By default that of answers that are read as a whole. */
  readonly limit?: AnswerLimit
}

/**
 * The operations that are answered once something is done, and how long that may take, in milliseconds: a whole snapshot is on the disk
 * of the server, another member leads, a quorum has committed a change of the members. A bundle is silent while the server makes a part of it.
 */
const LONG_OPERATIONS: readonly (readonly [operation: RegExp, ms: number])[] = [
  [/^POST \/api\/v1\/snapshots$/, 600_000],
  [/^POST \/api\/v1\/leader\/transfer$/, 120_000],
  [/^(?:POST|DELETE) \/api\/v1\/members\b/, 120_000],
  [/^GET \/api\/v1\/support-bundle$/, 150_000],
]

/** An answer whose body is still to come. */
interface Answer {
  readonly message: IncomingMessage
  /** Why the connection was given up; undefined while something arrives. */
  readonly silence: () => Error | undefined
}

const TOO_LONG = 'The answer of the server is too long. Ask for less.'

const timeout = (message: string): Error => Object.assign(new Error(message), { code: 'ETIMEDOUT' })

/** Sends requests to the HTTP port of a server, with the identity of the user. */
export class AdminClient {
  readonly url: URL
  readonly #options: AdminOptions
  readonly #signal: AbortSignal
  #authorization: Promise<string | undefined> | undefined

  /** `url` is that of the port, `http://host:8080`; a host alone will do. Throws a `UsageError` for anything else. */
  constructor(url: string | undefined, options: AdminOptions, signal: AbortSignal) {
    this.url = parseUrl(url || DEFAULT_URL)
    this.#options = options
    this.#signal = signal
  }

  /** Sends a request and reads the JSON of its answer. */
  async json<T>(method: AdminMethod, path: string, request: AdminRequest = {}): Promise<T> {
    const { chunks } = await this.request(method, path, request)
    const text = await textOf(chunks)
    try {
      return JSON.parse(text) as T
    } catch (cause) {
      throw new Failure(
        `The answer of ${this.url.host} is no JSON. Check that --admin names the HTTP port of a Zabra server.`,
        ExitCode.refused,
        { cause },
      )
    }
  }

  /** Sends a request. Rejects with a `Failure` when there is no answer, or one of another status. */
  async request(
    method: AdminMethod,
    path: string,
    { accepts = [200, 202], limit = ANSWER, ...sent }: AdminRequest = {},
  ): Promise<AdminResponse> {
    const authorization = await (this.#authorization ??= this.#readAuthorization())
    const { message, silence } = await this.#send(method, path, sent, authorization)
    const status = message.statusCode ?? 0
    const isAccepted = accepts.includes(status)
    const chunks = this.#chunksOf(message, isAccepted ? limit : ANSWER, silence)
    if (!isAccepted) throw await this.#refused(message, `${method} ${path}`, chunks)
    const headers = Object.fromEntries(
      Object.entries(message.headers).map(([name, value]) => [
        name,
        Array.isArray(value) ? value.join(', ') : value,
      ]),
    )
    return { status, headers, chunks }
  }

  async #send(
    method: AdminMethod,
    path: string,
    { body, content, silentMs }: AdminRequest,
    authorization: string | undefined,
  ): Promise<Answer> {
    const { timeoutMs, tls } = this.#options
    const isSecure = this.url.protocol === 'https:'
    const { request } = isSecure ? await import('node:https') : await import('node:http')
    const text = body === undefined ? undefined : JSON.stringify(body)
    const options = {
      method,
      signal: this.#signal,
      // From the look-up of the name on; `setTimeout` alone begins once a connection is open.
      timeout: timeoutMs,
      headers: {
        accept: 'application/json',
        ...(authorization === undefined ? {} : { authorization }),
        ...(text === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
        ...(content === undefined
          ? {}
          : { 'content-type': 'application/octet-stream', 'content-length': content.bytes }),
      },
      ...(isSecure ? secureOptions(tls) : {}),
    }
    return new Promise((resolve, reject) => {
      let waitMs = timeoutMs
      let hasBegun = false
      let silence: Error | undefined
      const sent: ClientRequest = request(new URL(path, this.url), options, (message) => {
        hasBegun = true
        if (silentMs !== undefined) sent.setTimeout((waitMs = silentMs))
        resolve({ message, silence: () => silence })
      })
      sent.setTimeout(waitMs, () => {
        silence = timeout(
          hasBegun ? `no more of the answer for ${waitMs} ms` : `no answer within ${waitMs} ms`,
        )
        sent.destroy(silence)
      })
      const [, longMs = 0] = LONG_OPERATIONS.find(([operation]) => operation.test(`${method} ${path}`)) ?? []
      sent.once('finish', () => sent.setTimeout((waitMs = Math.max(timeoutMs, longMs))))
      sent.on('error', (error) => reject(this.#unreachable(error)))
      if (content === undefined) sent.end(text)
      // A server that refuses the request answers before it has read all of it; its answer counts then.
      else pipeline(content.chunks, sent).catch((error: Error) => reject(this.#unreachable(error)))
    })
  }

  async *#chunksOf(
    message: IncomingMessage,
    { bytes, ms }: AnswerLimit,
    silence: Answer['silence'],
  ): AsyncGenerator<Uint8Array> {
    const limitMs = Math.max(ms, this.#options.timeoutMs)
    const end = (): void => void message.destroy(timeout(`no end of the answer within ${limitMs} ms`))
    const timer = limitMs === Infinity ? undefined : setTimeout(end, limitMs)
    let left = bytes
    try {
      for await (const chunk of message as AsyncIterable<Uint8Array>) {
        left -= chunk.length
        if (left < 0) throw new Failure(TOO_LONG, ExitCode.refused)
        yield chunk
      }
    } catch (error) {
      throw error instanceof Failure ? error : this.#unreachable(silence() ?? (error as Error))
    } finally {
      clearTimeout(timer)
    }
  }

  #unreachable(error: Error): Error {
    if (this.#signal.aborted) return this.#signal.reason as Error
    const { code } = error as NodeJS.ErrnoException
    const failure = tlsFailureOf(error)
    if (failure !== undefined)
      return new Failure(
        `Cannot connect to ${this.url.host} (${failure.code}): ${failure.reason}. ${adviceForFault(failure)}`,
        ExitCode.connection,
        { cause: error },
      )
    return new Failure(
      `${this.url.host}: ${error.message.replace(/\s+/g, ' ')}. Check that the HTTP port of a server is there (admin.serverPort), or name it with --admin.`,
      code === undefined ? ExitCode.unexpected : ExitCode.connection,
      { cause: error },
    )
  }

  async #refused(
    { statusCode: status = 0, headers }: IncomingMessage,
    operation: string,
    chunks: AsyncIterable<Uint8Array>,
  ): Promise<Failure> {
    const text = await textOf(chunks)
    const { title, detail } = problemIn(text)
    const reason = title ?? (text.split('\n', 1)[0]!.trim() || `status ${status}`)
    const advice =
      status === 401 || status === 403
        ? ' Give an identity with --auth digest:user:password, --auth token:TOKEN or --sasl-user; the settings admin.role.* and admin.tokensFile say which role it has.'
        : status === 404 && title === undefined
          ? ` ${this.url.host} does not know ${operation}: it may be no Zabra server, or an older one.`
          : status === 429
            ? ` Try again ${/^\d{1,6}$/.test(headers['retry-after'] ?? '') ? `in ${headers['retry-after']} s` : 'later'}.`
            : ''
    return new Failure(
      `${reason.replace(/\.$/, '')}.${detail === undefined ? '' : ` ${detail}`}${advice}`,
      status === 401 || status === 403
        ? ExitCode.noPermission
        : status === 504
          ? ExitCode.connection
          : ExitCode.refused,
    )
  }

  /** The header of the identity: a SASL user, else a token, else the first digest identity. */
  async #readAuthorization(): Promise<string | undefined> {
    const { auth, login, token } = this.#options
    if (login !== undefined) {
      const pair = `${login.user}:${await login.password()}`
      return `Basic ${Buffer.from(pair).toString('base64')}`
    }
    if (token !== undefined) return `Bearer ${token}`
    const digest = auth.find(({ scheme }) => scheme === 'digest')
    if (digest !== undefined) return `digest ${digest.credential}`
    return this.#options.tls.keyStore === undefined || this.url.protocol !== 'https:' ? undefined : 'x509'
  }
}

function parseUrl(text: string): URL {
  const url = text.includes('://') ? text : `http://${text}`
  try {
    const parsed = new URL(url)
    if (parsed.protocol === 'http:' || parsed.protocol === 'https:') return parsed
  } catch {
    // The error below says what is expected.
  }
  throw new UsageError(
    `Expected the HTTP port of a server in --admin or ZABRA_ADMIN, such as http://host:8080, got ${JSON.stringify(text)}.`,
  )
}

function secureOptions({ trustStore, keyStore }: AdminOptions['tls']) {
  return {
    ...(trustStore === undefined ? {} : { ca: pemOf(trustStore, '--ca') }),
    ...(keyStore === undefined
      ? {}
      : {
          cert: pemOf(keyStore, '--cert'),
          key: pemOf({ ...keyStore, path: keyStore.keyPath ?? keyStore.path }, '--key'),
          ...(keyStore.password === undefined ? {} : { passphrase: keyStore.password }),
        }),
  }
}

function pemOf({ path }: CertificateStore, option: string): string {
  let text: string
  try {
    text = readFileSync(path, 'latin1')
  } catch (error) {
    throw new UsageError(`Cannot read ${path} (${(error as NodeJS.ErrnoException).code}). Check the path.`)
  }
  if (text.includes('-----BEGIN ')) return text
  throw new UsageError(`${path}: Expected a PEM file in ${option} for the HTTP port, got another format.`)
}

function problemIn(text: string): { readonly title?: string; readonly detail?: string } {
  try {
    const value = JSON.parse(text) as { title?: unknown; detail?: unknown; error?: unknown } | null
    const title = typeof value?.title === 'string' ? value.title : value?.error
    return {
      ...(typeof title === 'string' ? { title } : {}),
      ...(typeof value?.detail === 'string' ? { detail: value.detail } : {}),
    }
  } catch {
    return {}
  }
}

/** Reads an answer of up to `maxBytes`. Throws a `Failure` with the message `tooLong` beyond them. */
export async function textOf(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes = MAX_ANSWER_BYTES,
  tooLong = TOO_LONG,
): Promise<string> {
  const parts: Uint8Array[] = []
  let length = 0
  for await (const chunk of chunks) {
    length += chunk.length
    if (length > maxBytes) throw new Failure(tooLong, ExitCode.refused)
    parts.push(chunk)
  }
  return Buffer.concat(parts).toString()
}
