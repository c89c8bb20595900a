import type { TreeFindings } from '@zabra/server/core'
import { ExitCode, Failure } from '../exit-codes.ts'
import { textOf, type AdminClient } from '../session/admin-client.ts'
import { checkAgreement } from './check-agreement.ts'
import { checkMetrics, clockSkew, describeSkew } from './check-metrics.ts'
import { checkRunning, type ClusterAnswer, type SelfAnswer } from './check-running.ts'
import { checkTree } from './check-tree.ts'
import { finding, type Finding } from './finding.ts'
import { MetricsText } from './metrics-text.ts'

/** The HTTP port of a server. */
export type AdminPort = Pick<AdminClient, 'url' | 'json' | 'request'>

/** The header `date` has whole seconds. */
const MAX_SKEW_SECONDS = 2
/** Bytes of metrics that are read. */
const MAX_METRICS_BYTES = 16 << 20

/** Examines running servers through their HTTP ports, and compares them. Each finding of an ensemble is reported once. */
export async function* examineServers(admins: readonly AdminPort[]): AsyncGenerator<Finding> {
  const seen = new Set<string>()
  const answers: { readonly where: string; readonly self: SelfAnswer }[] = []
  for (const admin of admins) {
    const where = admin.url.host
    let self: SelfAnswer
    try {
      self = await admin.json<SelfAnswer>('GET', '/api/v1/self')
    } catch (error) {
      yield unanswered(where, error)
      continue
    }
    answers.push({ where, self })
    for await (const found of examineServer(admin, self)) {
      // What one member says of the others, the next one says too.
      const key = [found.id, found.evidence.replaceAll(where, '')].join('\n')
      if (!seen.has(key)) yield found
      seen.add(key)
    }
  }
  yield* compare(answers)
}

async function* examineServer(admin: AdminPort, self: SelfAnswer): AsyncGenerator<Finding> {
  const where = admin.url.host
  const parts = [
    async () => [...checkRunning(where, self, await admin.json<ClusterAnswer>('GET', '/api/v1/cluster'))],
    async () => {
      const { text, skewSeconds } = await readMetrics(admin)
      const uptimeMs = self.uptimeMs ?? 0
      const found = [...checkMetrics(where, new MetricsText(text), { now: Date.now(), uptimeMs })]
      if (Math.abs(skewSeconds) > MAX_SKEW_SECONDS)
        found.push(clockSkew(where, `${describeSkew(skewSeconds)} that of this machine`))
      return found
    },
    async () => {
      const tree = await admin.json<TreeFindings>('GET', '/api/v1/findings')
      return [...checkTree(where, tree, bytesOf(self.settings?.['jute.maxbuffer']))]
    },
  ]
  for (const part of parts) {
    try {
      yield* await part()
    } catch (error) {
      yield unanswered(where, error)
    }
  }
}

/** Reads the metrics, and how far the clock of the server is ahead of that of this machine, in seconds. */
async function readMetrics(
  admin: AdminPort,
): Promise<{ readonly text: string; readonly skewSeconds: number }> {
  const begun = Date.now()
  const { headers, chunks } = await admin.request('GET', '/metrics')
  const ended = Date.now()
  const text = await textOf(chunks, MAX_METRICS_BYTES, 'Its metrics are too long to be read.')
  const serverTime = Date.parse(headers['date'] ?? '')
  // Between the two times, the server wrote down the second that had begun.
  const ahead = serverTime - ended > 0 ? serverTime - ended : Math.min(0, serverTime + 1000 - begun)
  return { text, skewSeconds: Number.isNaN(serverTime) ? 0 : ahead / 1000 }
}

/** Returns the bytes of a size that a server shows, such as `1048575` or `4 MiB`; undefined for another text. */
function bytesOf(text: string | undefined): number | undefined {
  const [, number, unit = ''] = /^(\d+)(?:\s*([KMG])iB)?/.exec(text ?? '') ?? []
  return number === undefined ? undefined : Number(number) * 1024 ** ' KMG'.indexOf(unit || ' ')
}

function unanswered(where: string, error: unknown): Finding {
  // A server of another release may answer in another shape.
  if (error instanceof TypeError)
    return finding(
      'not-checked',
      where,
      `its answer is not understood: ${error.message}`,
      'Use the zabra of the same release.',
    )
  if (!(error instanceof Failure)) throw error
  const reason = error.message.startsWith(`${where}: `)
    ? error.message.slice(where.length + 2)
    : error.message
  return error.exitCode === ExitCode.connection
    ? finding('no-answer', where, reason, 'Start the server, or name its HTTP port with --admin.')
    : finding('not-checked', where, reason, 'Mend what the message names, and run zabra doctor again.')
}

function* compare(
  answers: readonly { readonly where: string; readonly self: SelfAnswer }[],
): Generator<Finding> {
  const byId = new Map<number, string[]>()
  for (const { where, self } of answers)
    if (self.id !== undefined) byId.set(self.id, [...(byId.get(self.id) ?? []), where])
  for (const [id, places] of byId)
    if (places.length > 1)
      yield finding(
        'same-id',
        places.join(', '),
        `each says that it is server ${id}`,
        'Give each member a myid of its own; or name each server once in --admin.',
      )
  yield* checkAgreement(answers.map(({ where, self }) => ({ where, settings: self.settings ?? {} })))
}
