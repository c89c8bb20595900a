import { concatBytes } from '@zabra/protocol'
import { DiskError, type Disk, type HttpResponse, type Platform } from '@zabra/runtime'
import { COMMIT, FULL_VERSION } from '../../../version.ts'
import type { AdminTarget } from '../../admin-target.ts'
import { passingProblem, type ApiCall } from './api-route.ts'
import { TAR_END, tarHeader, tarPadding } from './tar.ts'

/** Bytes of all files, and of one: a longer one is cut. */
const MAX_BYTES = 64 << 20
const MAX_FILE_BYTES = 8 << 20
/** Bytes that are compressed at once, and characters that are encoded at once. */
const CHUNK = 1 << 16
/** The time that a bundle may take; what is not there then is left out. */
const MAX_MS = 120_000
/** The same for one file: a disk that does not answer, for example, must not take the others away. */
const MAX_FILE_MS = 20_000
/** For how long the busiest keys are counted. */
const TOP_MS = 2000
/** Seconds after which to ask again while another bundle is made. */
const RETRY_SECONDS = 10
/** Files of a folder that are listed, and that are asked for their sizes at once. */
const MAX_LISTED = 1000
const SIZES_AT_ONCE = 16

type Body = NonNullable<HttpResponse['body']>

/** A file of the bundle. */
interface BundleFile {
  readonly name: string
  /** What it has, for the manifest. */
  readonly about: string
  /** Makes the contents. Rejects with a `LeftOut` where there are none. */
  readonly make: () => Promise<Body>
}

/** Says why a file is left out. */
class LeftOut extends Error {
  override readonly name = 'LeftOut'
}

/** Makes bundles for support, one at a time: archives of answers of the HTTP port, which withhold secrets, and hold no data. */
export class SupportBundles {
  readonly #platform: Pick<Platform, 'clock' | 'compression' | 'logger'>
  /** The bundle that is being made, and when its time is over: a reader that stops does not keep others from one. */
  #current: { readonly endsAt: number } | undefined

  constructor(platform: Pick<Platform, 'clock' | 'compression' | 'logger'>) {
    this.#platform = platform
  }

  /** Returns the answer with a new bundle; 429 while another one is made. */
  begin(call: ApiCall): HttpResponse {
    const { clock } = this.#platform
    const now = clock.monotonic()
    if (this.#current !== undefined && now < this.#current.endsAt) return busy()
    const bundle = { endsAt: now + MAX_MS }
    this.#current = bundle
    const release = (): void => {
      if (this.#current === bundle) this.#current = undefined
    }
    const folder = `zabra-${call.target.settings.serverId}-${stamp(clock.wall())}`
    const chunks = this.#compressed(this.#archive(call, folder, bundle.endsAt), release)
    // The generator does not learn that the client left before it has begun.
    const close = async () => {
      release()
      return chunks.return(undefined)
    }
    const body = { [Symbol.asyncIterator]: () => ({ next: () => chunks.next(), return: close }) }
    const headers = {
      'content-type': 'application/gzip',
      'content-disposition': `attachment; filename="${folder}.tar.gz"`,
      'cache-control': 'no-store',
    }
    return { status: 200, headers, body }
  }

  async *#compressed(pieces: AsyncIterable<Uint8Array>, release: () => void): AsyncGenerator<Uint8Array> {
    const gzip = this.#platform.compression.gzip()
    try {
      for await (const piece of pieces)
        for (let at = 0; at < piece.length; at += CHUNK) {
          const bytes = await gzip.write(piece.subarray(at, at + CHUNK))
          if (bytes.length > 0) yield bytes
        }
      yield await gzip.end()
    } finally {
      release()
    }
  }

  /** Yields the bytes of the archive: one file is in memory at a time. */
  async *#archive(call: ApiCall, folder: string, endsAt: number): AsyncGenerator<Uint8Array> {
    const { clock } = this.#platform
    const madeAt = clock.wall()
    const [present, absent]: [string[], string[]] = [[], []]
    let left = MAX_BYTES
    for (const { name, about, make } of filesOf(call, this.#platform)) {
      try {
        const body = await this.#within(make, endsAt)
        const { bytes, isCut } = await this.#collect(body, Math.min(left, MAX_FILE_BYTES), endsAt)
        left -= bytes.length
        present.push(
          `${name.padEnd(32)} ${String(bytes.length).padStart(9)}  ${about}${isCut ? ' (cut here: it is longer)' : ''}`,
        )
        yield tarHeader(`${folder}/${name}`, bytes.length, madeAt)
        yield bytes
        yield tarPadding(bytes.length)
      } catch (error) {
        absent.push(`${name.padEnd(32)} ${error instanceof Error ? error.message : String(error)}`)
      }
    }
    const manifest = encoder.encode(manifestOf(folder, { madeAt, present, absent }))
    yield tarHeader(`${folder}/MANIFEST.txt`, manifest.length, madeAt)
    yield manifest
    yield tarPadding(manifest.length)
    yield TAR_END
  }

  /** Resolves to what is made. Rejects once the time of the file or of the bundle is over. */
  #within<T>(make: () => Promise<T>, endsAt: number): Promise<T> {
    const { clock } = this.#platform
    return new Promise((resolve, reject) => {
      const leftMs = endsAt - clock.monotonic()
      const late = (): void => reject(new LeftOut(leftMs > MAX_FILE_MS ? NO_ANSWER : TOO_LATE))
      if (leftMs <= 0) return late()
      const cancel = clock.after(Math.min(leftMs, MAX_FILE_MS), 'end of a support bundle', late)
      make().then(resolve, reject).finally(cancel)
    })
  }

  /** Reads a body up to a number of bytes. */
  async #collect(
    body: Body,
    limit: number,
    endsAt: number,
  ): Promise<{ readonly bytes: Uint8Array; readonly isCut: boolean }> {
    const chunks: Uint8Array[] = []
    let length = 0
    for await (const chunk of chunksOf(body)) {
      if (this.#platform.clock.monotonic() >= endsAt) throw new LeftOut(TOO_LATE)
      chunks.push(chunk.subarray(0, limit - length).slice())
      length += chunk.length
      if (length > limit) break
    }
    return { bytes: concatBytes(chunks), isCut: length > limit }
  }
}

const NO_ANSWER = `there was no answer within ${MAX_FILE_MS / 1000} s`
const TOO_LATE = `there was no time left: a bundle takes ${MAX_MS / 1000} s at most`

const encoder = new TextEncoder()

async function* chunksOf(body: Body): AsyncGenerator<Uint8Array> {
  for await (const part of typeof body === 'string' || body instanceof Uint8Array ? [body] : body)
    if (typeof part !== 'string') yield part
    else yield* encoded(part)
}

/** Yields the bytes of a text, no more than two units of which are one character. */
function* encoded(text: string): Generator<Uint8Array> {
  for (let from = 0; from < text.length;) {
    let to = Math.min(from + CHUNK, text.length)
    if (to < text.length && (text.charCodeAt(to - 1) & 0xfc00) === 0xd800) to--
    yield encoder.encode(text.slice(from, to))
    from = to
  }
}

const busy = (): HttpResponse =>
  passingProblem(
    429,
    'Another bundle is being made',
    `This server makes one at a time. Ask again in ${RETRY_SECONDS} s.`,
    RETRY_SECONDS,
  )

/** Returns a time as 20261123T091251Z. */
const stamp = (wall: number): string =>
  new Date(wall).toISOString().replace(/\.\d+/, '').replaceAll(/[-:]/g, '')

// Files

/** Commands of the HTTP port whose answers are bounded, or are cut, and say something about a server. */
const COMMANDS = [
  'configuration',
  'connections',
  'dirs',
  'environment',
  'hash',
  'is_read_only',
  'last_snapshot',
  'leader',
  'monitor',
  'observers',
  'server_stats',
  'voting_view',
  'watch_summary',
  'zabstate',
]

function filesOf(
  { ask, target }: ApiCall,
  { clock, logger }: Pick<Platform, 'clock' | 'logger'>,
): readonly BundleFile[] {
  const answered = (name: string, path: string, about: string): BundleFile => ({
    name,
    about,
    make: () => answerOf(ask, path),
  })
  const top = (by: string): BundleFile =>
    answered(`top-${by}.json`, `/api/v1/top?by=${by}`, `what used the server most, by ${by}`)
  return [
    {
      name: 'version.json',
      about: 'version, platform, memory',
      async make() {
        // It begins to count.
        await ask('/api/v1/top')
        return text(describe(target))
      },
    },
    answered('self.json', '/api/v1/self', 'role, readiness, counts, settings in force'),
    answered('settings.json', '/api/v1/settings', 'settings in force, and where each was set'),
    answered('cluster.json', '/api/v1/cluster', 'all members, as this one knows them'),
    {
      name: 'readiness.txt',
      about: 'the checks of /readyz',
      make: async () => (await ask('/readyz?verbose')).body ?? '',
    },
    answered('log-level.json', '/api/v1/log-level', 'levels of the log'),
    {
      name: 'log.jsonl',
      about: 'the last lines of the log, at most 1,000 and 1 MiB',
      async make() {
        if (logger.lastLines === undefined)
          throw new LeftOut('the program of this server keeps no lines; look where it writes them')
        return `${[...logger.lastLines].join('\n')}\n`
      },
    },
    answered('slow.json', '/api/v1/slow', 'the last slow requests'),
    answered('findings.json', '/api/v1/findings', 'what is unwise in the tree'),
    answered('metrics.txt', '/metrics', 'all metrics'),
    ...COMMANDS.map((name) =>
      answered(
        `commands/${name}.json`,
        `${target.settings.adminCommandUrl}/${name}`,
        `the command ${name} of ZooKeeper`,
      ),
    ),
    {
      name: 'files.json',
      about: 'the files of the data and log folders: names, sizes, times',
      make: async () => text(await listFiles(target)),
    },
    {
      ...top('path'),
      async make() {
        await new Promise<void>((resolve) => void clock.after(TOP_MS, 'count of the busiest keys', resolve))
        return answerOf(ask, '/api/v1/top?by=path')
      },
    },
    ...['session', 'address', 'identity'].map(top),
  ]
}

/** Resolves to the body of an answer. Rejects with a `LeftOut` that has the reason where it was refused. */
async function answerOf(ask: ApiCall['ask'], path: string): Promise<Body> {
  const { status, headers = {}, body = '' } = await ask(path)
  if (status === 200) return body
  const isProblem = headers['content-type'] === 'application/problem+json' && typeof body === 'string'
  const { title } = isProblem ? (JSON.parse(body) as { readonly title: string }) : {}
  throw new LeftOut(`${path} has answered ${status}${title === undefined ? '' : `: ${title}`}`)
}

const text = (value: object): string => `${JSON.stringify(value, null, 2)}\n`

function describe({ settings, role, features, platform, startedAt, directories }: AdminTarget): object {
  const { system, clock } = platform
  return {
    id: settings.serverId,
    version: FULL_VERSION,
    commit: COMMIT,
    role,
    featureLevel: { release: features.release, finalized: features.finalized, proposed: features.proposed },
    uptimeMs: Math.floor(clock.monotonic() - startedAt),
    time: new Date(clock.wall()).toISOString(),
    pid: system.pid,
    directories,
    residentMemory: system.residentMemory(),
    heap: system.heap?.() ?? null,
    memoryLimits: system.memoryLimits?.() ?? null,
    cpuTimeMs: system.cpuTime?.() ?? null,
    fileDescriptors: system.fileDescriptors(),
    maxEventLoopDelayMs: system.maxEventLoopDelay?.() ?? null,
    maxGcPauseMs: system.maxGcPause?.() ?? null,
  }
}

interface ListedFolder {
  readonly folder: string
  readonly files: readonly { readonly name: string; readonly bytes: number; readonly modified: string }[]
  /** Files beyond those that are listed. */
  readonly omitted: number
  readonly problem?: string
}

async function listFiles({ settings, directories, platform }: AdminTarget): Promise<object> {
  const folders = new Set([settings.dataDir, directories.snapshots, directories.logs])
  const listed: ListedFolder[] = []
  for (const folder of folders) listed.push(await listFolder(platform.disk, folder))
  return { folders: listed }
}

async function listFolder(disk: Disk, folder: string): Promise<ListedFolder> {
  try {
    const names = await disk.list(folder)
    const shown = names.toSorted().slice(0, MAX_LISTED)
    const files: ListedFolder['files'][number][] = []
    for (let from = 0; from < shown.length; from += SIZES_AT_ONCE) {
      const some = shown.slice(from, from + SIZES_AT_ONCE)
      files.push(...(await Promise.all(some.map((name) => fileOf(disk, folder, name)))).flat())
    }
    return { folder, files, omitted: names.length - shown.length }
  } catch (error) {
    if (!(error instanceof DiskError)) throw error
    return { folder, files: [], omitted: 0, problem: error.message }
  }
}

/** Resolves to a file; to none where it was removed meanwhile. */
async function fileOf(disk: Disk, folder: string, name: string): Promise<ListedFolder['files']> {
  const path = `${folder}/${name}`
  try {
    const [bytes, modifiedAt] = await Promise.all([disk.size(path), disk.modifiedAt(path)])
    return [{ name, bytes, modified: new Date(modifiedAt).toISOString() }]
  } catch (error) {
    if (error instanceof DiskError) return []
    throw error
  }
}

// Manifest

const LEFT_OUT = `- the data of nodes, and their access control lists with the digests in them
- passwords, keys, tokens and secrets: settings that hold one say (set, not shown); files are listed, not copied
- lines of the log have no data, passwords, digests and tokens: the server never writes them
- dump, stat, watches and watches_by_path of ZooKeeper: they have no bound; /api/v1/sessions and /api/v1/watches have pages
- a profile of the processor: to begin and to end one stops the server for tens of milliseconds
- the audit log, where it has a file of its own: it says what each user did`

const SENSITIVE = `Paths of nodes, addresses of clients and names of users are in cluster.json, connections.json, findings.json,
log.jsonl, metrics.txt, self.json, settings.json, slow.json and top-*.json, and names of hosts and folders in most files.
Look at them before you pass the bundle on. You may remove files.`

function manifestOf(
  folder: string,
  {
    madeAt,
    present,
    absent,
  }: { readonly madeAt: number; readonly present: readonly string[]; readonly absent: readonly string[] },
): string {
  const failed = absent.length === 0 ? '' : `\nNot made:\n\n${absent.join('\n')}\n`
  return `Support bundle ${folder} of Zabra ${FULL_VERSION}
Made at ${new Date(madeAt).toISOString()}

Files, with their bytes:

${present.join('\n')}
${failed}
Left out on purpose:

${LEFT_OUT}

${SENSITIVE}
`
}
