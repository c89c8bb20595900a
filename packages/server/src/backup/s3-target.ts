import { concatBytes } from '@zabra/protocol'
import { DiskError, type Clock, type Cryptography, type DiskReader } from '@zabra/runtime'
import { AwsV4Signer } from 'aws4fetch'
import { TargetError } from './errors.ts'
import type { BackupTarget } from './target.ts'

/** The credentials of a caller of S3. */
export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
}

export interface S3Options {
  readonly bucket: string
  /** Begins the names of all objects; empty for none. */
  readonly prefix: string
  readonly region: string
  /** The URL of a store beside Amazon's, such as `http://minio:9000`; buckets are part of its paths then. */
  readonly endpoint: string | undefined
  /** Asked before each request, so that credentials may change. */
  readonly credentials: () => Promise<S3Credentials>
  readonly cryptography: Cryptography
  readonly clock: Pick<Clock, 'after' | 'wall'>
  /** Bytes of a part of an upload. */
  readonly partBytes?: number
}

/** A store accepts at most 10,000 parts: 80 GiB. */
const PART_BYTES = 8 << 20
const MAX_PARTS = 10_000
/** First bytes that are read of an object: a manifest needs no second request. */
const FIRST_BYTES = 64 * 1024
/** Bytes of each later read. */
const BLOCK_BYTES = 4 << 20
/** Longest answer that is no object, in bytes: a list of a thousand names. */
const MAX_ANSWER_BYTES = 4 << 20
/** Pages of a listing, each of up to 1,000 names. */
const MAX_PAGES = 10_000
/** Names in a folder. */
const MAX_NAMES = 1_000_000
const ATTEMPTS = 6
const FIRST_WAIT_MS = 200
const MAX_WAIT_MS = 5000
const TIMEOUT_MS = 60_000
/** Statuses after which the same request may succeed. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504])

interface S3Request {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** The name of the object; undefined for the bucket. */
  readonly name: string | undefined
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Body
  readonly accepts: readonly number[]
}

interface Body {
  readonly chunks: readonly Uint8Array<ArrayBuffer>[]
  readonly sha256: string
}

interface S3Response {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
}

/** A bucket of S3, or of a store with the same interface. Requests are signed with AWS Signature Version 4. */
export class S3Target implements BackupTarget {
  readonly url: string
  readonly #options: S3Options
  readonly #base: string
  /** What the clock of the store is ahead, in milliseconds. */
  #skewMs = 0

  constructor(options: S3Options) {
    const { bucket, prefix, region, endpoint } = options
    this.#options = options
    this.url = `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}`
    this.#base =
      endpoint === undefined
        ? `https://${bucket}.s3.${region}.amazonaws.com/`
        : `${endpoint.replace(/\/+$/, '')}/${bucket}/`
  }

  async list(folder: string): Promise<readonly string[]> {
    const prefix = this.#key(`${folder}/`)
    const names: string[] = []
    const query = { 'list-type': '2', 'encoding-type': 'url', delimiter: '/', prefix }
    for await (const text of this.#pages(query, nextKeys))
      for (const [, key] of text.matchAll(/<Key>([^<]*)<\/Key>/g)) {
        const name = this.#decoded(key!)
        const file = name.slice(prefix.length)
        // Others would lead out of the folder, since a URL with .. is that of another object.
        if (!name.startsWith(prefix) || !FILE.test(file)) continue
        if (names.push(file) > MAX_NAMES)
          throw new TargetError(
            `${this.url}/${folder}: Expected at most ${MAX_NAMES} names, got more. Check that the endpoint is a store of S3.`,
          )
      }
    return names
  }

  /**
   * Yields the pages of a listing. Ends early when the store refuses it with one of the statuses in `refusals`. Rejects with a
   * `TargetError` when the store does not come to an end.
   */
  async *#pages(
    query: Readonly<Record<string, string>>,
    next: (text: string) => Readonly<Record<string, string>>,
    refusals: readonly number[] = [],
  ): AsyncGenerator<string> {
    let from: Readonly<Record<string, string>> = {}
    for (let page = 1; ; page++) {
      const { status, bytes } = await this.#request({
        method: 'GET',
        name: undefined,
        query: { ...query, ...from },
        accepts: [200, ...refusals],
      })
      if (status !== 200) return
      const text = new TextDecoder().decode(bytes)
      yield text
      if (elementOf(text, 'IsTruncated') !== 'true') return
      const after = next(text)
      if (page === MAX_PAGES || JSON.stringify(after) === JSON.stringify(from))
        throw new TargetError(
          `${this.url}: Expected a listing of at most ${MAX_PAGES} pages, each after the one before, got page ${page} and the promise of another. Check that the endpoint is a store of S3.`,
        )
      from = after
    }
  }

  async open(name: string): Promise<DiskReader> {
    const first = await this.#read(name, 0, FIRST_BYTES, undefined)
    let block: Block = first
    return {
      size: async () => first.size,
      close: async () => {},
      read: async (into, position) => {
        let done = 0
        while (done < into.length && position + done < first.size) {
          const at = position + done
          if (at < block.start || at >= block.start + block.bytes.length)
            block = await this.#read(name, at, BLOCK_BYTES, first.etag)
          const part = block.bytes.subarray(at - block.start).subarray(0, into.length - done)
          if (part.length === 0) break
          into.set(part, done)
          done += part.length
        }
        return done
      },
    }
  }

  async write(name: string, chunks: AsyncIterable<Uint8Array>): Promise<number> {
    let size = 0
    let upload: Upload | undefined
    try {
      for await (const { body, bytes, isLast } of this.#partsOf(chunks)) {
        size += bytes
        if (upload === undefined && isLast) {
          await this.#request({ method: 'PUT', name, body, accepts: [200] })
          return size
        }
        upload ??= { id: await this.#beginUpload(name), etags: [] }
        upload.etags.push(await this.#putPart(name, upload, body))
      }
      if (upload !== undefined) await this.#completeUpload(name, upload)
      return size
    } catch (error) {
      if (upload !== undefined) await this.#abortUpload(name, upload)
      throw error
    }
  }

  async create(name: string, bytes: Uint8Array): Promise<boolean> {
    const body = this.#bodyOf(bytes)
    const answer = await this.#request({
      method: 'PUT',
      name,
      headers: { 'if-none-match': '*' },
      body,
      // 409: another writer creates it now. 412: it exists, perhaps from an earlier attempt whose answer was lost.
      accepts: [200, 409, 412, 501],
    })
    // A store that does not know the condition: the last writer counts.
    if (answer.status === 501) await this.#request({ method: 'PUT', name, body, accepts: [200] })
    return answer.status === 200 || answer.status === 501
  }

  async remove(name: string): Promise<void> {
    await this.#request({ method: 'DELETE', name, accepts: [200, 204, 404] })
  }

  async listUnfinished(before: number): Promise<readonly string[]> {
    const prefix = this.#key('')
    const names: string[] = []
    const query = { uploads: '', 'encoding-type': 'url', prefix }
    // Stores that have no such list, and credentials that may not read it, leave unfinished uploads to a rule of the bucket.
    const next = (text: string): Readonly<Record<string, string>> => ({
      'key-marker': this.#decoded(elementOf(text, 'NextKeyMarker') ?? ''),
      'upload-id-marker': elementOf(text, 'NextUploadIdMarker') ?? '',
    })
    for await (const text of this.#pages(query, next, [403, 405, 501]))
      for (const upload of text.split('<Upload>').slice(1)) {
        const key = this.#decoded(elementOf(upload, 'Key') ?? '')
        const begunAt = Date.parse(elementOf(upload, 'Initiated') ?? '')
        const name = key.slice(prefix.length)
        if (key.startsWith(prefix) && PIECE.test(name) && begunAt < before)
          names.push(`${name}${UPLOAD}${elementOf(upload, 'UploadId') ?? ''}`)
      }
    return names
  }

  async removeUnfinished(name: string): Promise<void> {
    const at = name.indexOf(UPLOAD)
    await this.#request({
      method: 'DELETE',
      name: name.slice(0, at),
      query: { uploadId: name.slice(at + UPLOAD.length) },
      accepts: [200, 204, 404],
    })
  }

  /** Joins chunks to parts, whose sums are computed chunk by chunk: that of a whole part would hold the event loop. */
  async *#partsOf(chunks: AsyncIterable<Uint8Array>) {
    const { cryptography, partBytes = PART_BYTES } = this.#options
    let parts: Uint8Array<ArrayBuffer>[] = []
    let hash = cryptography.sha256()
    let length = 0
    const take = (isLast: boolean) => {
      const part = { body: { chunks: parts, sha256: hash.digest() }, bytes: length, isLast }
      parts = []
      hash = cryptography.sha256()
      length = 0
      return part
    }
    for await (const chunk of chunks)
      for (let at = 0; at < chunk.length;) {
        // A full part is sent once another byte follows: only then it is not the last.
        if (length === partBytes) yield take(false)
        // A copy: the caller may reuse the chunk.
        const piece = chunk.slice(at, at + partBytes - length) as Uint8Array<ArrayBuffer>
        hash.update(piece)
        parts.push(piece)
        length += piece.length
        at += piece.length
      }
    yield take(true)
  }

  async #beginUpload(name: string): Promise<string> {
    const { bytes } = await this.#request({ method: 'POST', name, query: { uploads: '' }, accepts: [200] })
    const id = elementOf(new TextDecoder().decode(bytes), 'UploadId')
    if (id !== undefined) return id
    throw new TargetError(
      `Expected the id of an upload from ${this.url}, got another answer. Check backup.s3.endpoint.`,
    )
  }

  async #putPart(name: string, { id, etags }: Upload, body: Body): Promise<string> {
    const partNumber = etags.length + 1
    if (partNumber > MAX_PARTS)
      throw new TargetError(`${name} is longer than the ${MAX_PARTS} parts that ${this.url} accepts.`)
    const { headers } = await this.#request({
      method: 'PUT',
      name,
      query: { partNumber: String(partNumber), uploadId: id },
      body,
      accepts: [200],
    })
    return headers.get('etag') ?? ''
  }

  async #completeUpload(name: string, { id, etags }: Upload): Promise<void> {
    const parts = etags.map(
      (etag, index) =>
        `<Part><PartNumber>${index + 1}</PartNumber><ETag>${etag.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</ETag></Part>`,
    )
    const bytes = new TextEncoder().encode(
      `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`,
    )
    const answer = await this.#request({
      method: 'POST',
      name,
      query: { uploadId: id },
      body: this.#bodyOf(bytes),
      // 404: an earlier attempt has completed it, and its answer was lost.
      accepts: [200, 404],
    })
    const text = new TextDecoder().decode(answer.bytes)
    // A failure while the parts are joined comes with status 200.
    const isDone = answer.status === 200 ? elementOf(text, 'Code') === undefined : await this.#exists(name)
    if (!isDone) throw this.#refused({ method: 'POST', name }, answer, text)
  }

  /** Returns a body with its sum. */
  #bodyOf(bytes: Uint8Array): Body {
    const hash = this.#options.cryptography.sha256()
    hash.update(bytes)
    return { chunks: [bytes as Uint8Array<ArrayBuffer>], sha256: hash.digest() }
  }

  /** Removes the parts of an upload that has failed. The store keeps them, and their price, where this fails too. */
  async #abortUpload(name: string, { id }: Upload): Promise<void> {
    await this.#request({ method: 'DELETE', name, query: { uploadId: id }, accepts: [200, 204, 404] }).catch(
      () => {},
    )
  }

  async #exists(name: string): Promise<boolean> {
    const { status } = await this.#request({
      method: 'GET',
      name,
      headers: { range: 'bytes=0-0' },
      accepts: [200, 206, 404, 416],
    })
    return status !== 404
  }

  async #read(name: string, start: number, length: number, etag: string | undefined): Promise<Block> {
    const { status, headers, bytes } = await this.#request({
      method: 'GET',
      name,
      headers: {
        range: `bytes=${start}-${start + length - 1}`,
        ...(etag === undefined ? {} : { 'if-match': etag }),
      },
      accepts: [200, 206, 404, 416],
    })
    if (status === 404) throw new DiskError(`ENOENT on ${this.url}/${name}`, 'ENOENT', name)
    // An object without bytes has no range.
    if (status === 416) return { start, bytes: new Uint8Array(0), size: 0, etag: undefined }
    const [, from, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(headers.get('content-range') ?? '') ?? []
    const size = status === 200 ? bytes.length : Number(total ?? Number.NaN)
    if (!Number.isSafeInteger(size) || Number(status === 200 ? 0 : from) !== start)
      throw new TargetError(
        `Expected bytes ${start} to ${start + length - 1} of ${this.url}/${name}, got an answer without that range. Check backup.s3.endpoint.`,
      )
    return { start, bytes, size, etag: headers.get('etag') ?? undefined }
  }

  /** Sends a request until it gets a definite answer. Rejects with a `TargetError` for one that is not accepted. */
  async #request(request: S3Request): Promise<S3Response> {
    for (let attempt = 1; ; attempt++) {
      let response: S3Response | undefined
      let failure: unknown
      try {
        response = await this.#send(request)
      } catch (error) {
        if (error instanceof TargetError) throw error
        failure = error
      }
      if (response !== undefined) {
        if (request.accepts.includes(response.status)) return response
        const text = new TextDecoder().decode(response.bytes)
        const isSkewed =
          elementOf(text, 'Code') === 'RequestTimeTooSkewed' && this.#takeTime(response.headers)
        if (!isSkewed && !TRANSIENT.has(response.status)) throw this.#refused(request, response, text)
        failure = this.#refused(request, response, text)
      }
      if (attempt === ATTEMPTS) throw this.#unreachable(failure)
      await this.#wait(Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1)))
    }
  }

  async #send({ method, name, query = {}, headers = {}, body }: S3Request): Promise<S3Response> {
    const { region, credentials, clock } = this.#options
    const url = new URL(this.#base + (name === undefined ? '' : encodeKey(this.#key(name))))
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value)
    const signed = await new AwsV4Signer({
      ...(await credentials()),
      method,
      url: url.href,
      headers: { ...headers, 'x-amz-content-sha256': body?.sha256 ?? EMPTY_SHA256 },
      service: 's3',
      region,
      datetime: new Date(clock.wall() + this.#skewMs).toISOString().replaceAll(/[:-]|\.\d{3}/g, ''),
    } as ConstructorParameters<typeof AwsV4Signer>[0]).sign()
    const timeout = new AbortController()
    const cancel = clock.after(TIMEOUT_MS, 'answer of the store of backups', () =>
      timeout.abort(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)),
    )
    try {
      const response = await fetch(signed.url, {
        method,
        headers: signed.headers,
        redirect: 'manual',
        signal: timeout.signal,
        ...(body === undefined ? {} : { body: new Blob([...body.chunks]) }),
      })
      return {
        status: response.status,
        headers: response.headers,
        bytes: await bodyOf(response, MAX_ANSWER_BYTES + BLOCK_BYTES),
      }
    } finally {
      cancel()
    }
  }

  #takeTime(headers: Headers): boolean {
    const time = Date.parse(headers.get('date') ?? '')
    if (Number.isNaN(time)) return false
    this.#skewMs = time - this.#options.clock.wall()
    return true
  }

  #refused(
    { method, name }: Pick<S3Request, 'method' | 'name'>,
    { status, headers }: S3Response,
    text: string,
  ): TargetError {
    const code = elementOf(text, 'Code')?.slice(0, 100)
    const what = `${this.url}${name === undefined ? '' : `/${name}`} refused ${method} with status ${status}${code === undefined ? '' : ` (${code})`}`
    const region = headers.get('x-amz-bucket-region') ?? elementOf(text, 'Region') ?? null
    if ((status >= 300 && status < 400) || code === 'AuthorizationHeaderMalformed')
      return new TargetError(
        `${what}: the bucket is in ${region === null ? 'another region' : `the region ${region.slice(0, 40)}`}. Set the region of S3 to it.`,
      )
    if (status === 401 || status === 403 || code === 'ExpiredToken' || code === 'InvalidToken')
      return new TargetError(
        `${what}. Check the credentials, and that they may list the bucket, and read, write and delete its objects.`,
      )
    if (status === 404) return new TargetError(`${what}. Check the name of the bucket.`)
    return new TargetError(`${what}. Check the store, and the endpoint and region of S3.`)
  }

  #unreachable(cause: unknown): TargetError {
    const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
    const reason = inner instanceof Error ? inner.message : String(inner)
    return new TargetError(
      `${this.url} did not answer as expected in ${ATTEMPTS} attempts; the last one: ${reason}`,
      { cause },
    )
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#options.clock.after(ms, 'next attempt of a backup', resolve))
  }

  /** Decodes a key of an answer. Throws a `TargetError` for one that is not encoded as asked for. */
  #decoded(key: string): string {
    try {
      return decodeURIComponent(key.replaceAll('+', ' '))
    } catch (cause) {
      throw new TargetError(
        `${this.url}: Expected names that are encoded as in URLs, got others. Check that the endpoint is a store of S3.`,
        { cause },
      )
    }
  }

  #key(name: string): string {
    const { prefix } = this.#options
    return prefix === '' ? name : `${prefix}/${name}`
  }
}

/** Stands between the name of an object and the id of an upload to it. */
const UPLOAD = '?uploadId='
/** The names of objects that may be uploaded in parts. */
const PIECE = /^(?:snapshot|log)\/[\w-][\w.-]{0,79}$/
/** The names of files in a folder. */
const FILE = /^(?!\.{1,2}$)[^/]{1,200}$/

/** Returns where a listing goes on. */
const nextKeys = (text: string): Readonly<Record<string, string>> => ({
  'continuation-token': elementOf(text, 'NextContinuationToken') ?? '',
})

interface Upload {
  readonly id: string
  readonly etags: string[]
}

/** Bytes of an object. */
interface Block {
  readonly start: number
  readonly bytes: Uint8Array
  /** The size of the object. */
  readonly size: number
  /** Tells versions of the object apart. */
  readonly etag: string | undefined
}

const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

const encodeKey = (key: string): string => key.split('/').map(encodeURIComponent).join('/')

const elementOf = (xml: string, name: string): string | undefined =>
  new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]

/** Reads the body of an answer. Rejects when it is longer than `max` bytes. */
async function bodyOf(response: Response, max: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    const bytes = chunk as Uint8Array
    length += bytes.length
    // The iterator is returned, which ends the transfer.
    if (length > max) throw new TargetError(`Expected an answer of at most ${max} bytes from the store.`)
    chunks.push(bytes)
  }
  return concatBytes(chunks)
}
