import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeWith } from './harness/requirements.ts'
import { bytes } from './harness/bytes.ts'
import { Client, fourLetterWord } from './harness/client.ts'
import { op } from './harness/opcodes.ts'
import { serverUnderTest, reference, Server } from './harness/servers.ts'

const words = [
  'conf',
  'cons',
  'crst',
  'dirs',
  'dump',
  'envi',
  'gtmk',
  'ruok',
  'srvr',
  'srst',
  'stat',
  'wchc',
  'wchp',
  'wchs',
  'isro',
  'hash',
]

/** Masks the values that differ from process to process. */
function shape(text: string): string[] {
  return text.split('\n').map((line) =>
    line
      .replace(/^(Zookeeper version: ).*/, '$1VERSION')
      .replace(/[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d [A-Z]+ \d{4}/g, 'DATE')
      .replace(/127\.0\.0\.1:\d+/g, 'ADDRESS')
      .replace(/\d+ expire at/g, 'N expire at')
      .replace(/0x[0-9a-f]+/g, 'HEX')
      .replace(/=\/\S+/g, '=FOLDER')
      .replace(/(to|timeout)=(\d+)/g, '$1=$2'),
  )
}

const numbers = (lines: readonly string[]): string[] =>
  lines.map((line) => line.replace(/-?\d+(\.\d+)?/g, 'N'))

/** Returns the distinct masked lines: the expiry buckets of sessions depend on timing. */
const kinds = (lines: readonly string[]): string[] => [...new Set(numbers(lines))].sort()

/** Metrics of Apache ZooKeeper for parts that a standalone Zabra server does not have. */
const withoutCounterpart: ReadonlySet<string> = new Set(
  [
    'add_dead_watcher_stall_time cnxn_closed_without_zk_server_running commit_count dead_watchers_cleared',
    'dead_watchers_queued diff_count ensemble_auth_fail ensemble_auth_skip ensemble_auth_success insecure_admin_count',
    'learner_commit_received_count learner_proposal_received_count looking_count outstanding_changes_queued',
    'outstanding_changes_removed prep_processor_request_queued proposal_count quit_leading_due_to_disloyal_voter',
    'request_commit_queued requests_not_forwarded_to_commit_processor response_packet_cache_hits',
    'response_packet_cache_misses response_packet_get_children_cache_hits response_packet_get_children_cache_misses',
    'revalidate_count skip_learner_request_to_next_processor_count snap_count stale_replies stale_requests',
    'stale_requests_dropped sync_processor_request_queued throttled_ops tls_handshake_exceeded unsuccessful_handshake',
  ].flatMap((line) => line.split(' ').map((name) => `zk_${name}`)),
)

describeWith(['apache'], 'four-letter words', () => {
  let servers: readonly Server[] = []
  const clients: Client[] = []

  beforeAll(async () => {
    servers = await Promise.all([Server.start({ kind: reference }), Server.start({ kind: serverUnderTest })])
    for (const server of servers) {
      const client = await Client.connect(server.port, { timeoutMs: 20_000 })
      await client.create('/w', 'data')
      await client.create('/w/e', '', 1)
      await client.ok(op.getData, bytes().str('/w').bool(true).done(), 'watch')
      await client.ok(op.exists, bytes().str('/').bool(true).done(), 'watch')
      clients.push(client)
    }
  })

  afterAll(async () => {
    for (const client of clients) client.drop()
    await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()))
  })

  const both = (command: string | Uint8Array): Promise<string[]> =>
    Promise.all(servers.map(({ port }) => fourLetterWord(port, command)))

  it.each(words)('%s prints the lines of Apache ZooKeeper', async (name) => {
    const [apache, zabra] = (await both(name)).map(shape) as [string[], string[]]
    if (name === 'envi') {
      const keys = (lines: string[]): string[] => lines.map((line) => line.split('=')[0]!)
      expect(keys(zabra)).toEqual(keys(apache))
    } else if (['dump', 'cons', 'stat'].includes(name)) expect(kinds(zabra)).toEqual(kinds(apache))
    else if (name === 'conf')
      expect(zabra.map((line) => line.replace(/(clientPort|Size)=\d+/, '$1=N'))).toEqual(
        apache.map((line) => line.replace(/(clientPort|Size)=\d+/, '$1=N')),
      )
    else expect(numbers(zabra)).toEqual(numbers(apache))
  })

  it('wchp, wchc and wchs list the watches by path, by session and in total', async () => {
    for (const [index, server] of servers.entries()) {
      const id = `0x${clients[index]!.session.id.toString(16)}`
      expect(await fourLetterWord(server.port, 'wchc')).toContain(`${id}\n\t/`)
      expect(await fourLetterWord(server.port, 'wchp')).toContain(`/w\n\t${id}\n`)
      expect(await fourLetterWord(server.port, 'wchs')).toBe(
        '1 connections watching 2 paths\nTotal watches:2\n',
      )
    }
  })

  it('stmk sets the mask that gtmk shows', async () => {
    const mask = Buffer.concat([Buffer.from('stmk'), Buffer.from('00000000000000fa', 'hex')])
    const [apache, zabra] = await both(mask)
    expect(zabra).toBe(apache)
    expect((await both('gtmk')).map(String)).toEqual([apache, apache])
  })

  it('mntr has every key of Apache ZooKeeper', async () => {
    const [apache, zabra] = (await both('mntr')).map((text) =>
      text.split('\n').map((line) => line.split('\t')),
    ) as [string[][], string[][]]
    expect(zabra.slice(0, 2).map(([key]) => key)).toEqual(['zk_version', 'zk_server_state'])
    expect(zabra.filter((fields) => fields.length !== 2 && fields.join('') !== '')).toEqual([])
    const known = new Set(zabra.map(([key]) => key))
    // Summaries of stages, queues and namespaces, and the metrics of the JVM: docs/divergence.md has the row.
    const without =
      /^zk_(jvm_|(avg|min|max|cnt|sum|p50|p95|p99|p999)_(?!(readlatency|updatelatency|fsynctime|snapshottime|sync_processor_batch_size|node_\w+_watch_count)$))/
    const absent = apache
      .map(([key]) => key!)
      .filter((key) => !known.has(key) && !without.test(key) && !withoutCounterpart.has(key))
    expect(absent).toEqual([])
  })

  it('ruok and isro print no newline, and bytes after the word are ignored', async () => {
    expect(await both('ruok')).toEqual(['imok', 'imok'])
    expect(await both('isro')).toEqual(['rw', 'rw'])
    expect(await both('ruok\n')).toEqual(['imok', 'imok'])
    expect(await both('ruoksrvr')).toEqual(['imok', 'imok'])
  })

  it('an unknown word closes the connection without a reply', async () => {
    for (const text of ['abcd', 'RUOK', 'quit', 'GET ']) expect(await both(text)).toEqual(['', ''])
  })
})

describeWith(['apache'], 'four-letter words outside of the whitelist', () => {
  it.each([undefined, 'ruok, stat', 'srvr,nope'])(
    'are refused with the same line with the whitelist %s',
    async (list) => {
      const config = { '4lw.commands.whitelist': list ?? 'srvr' }
      // The harness polls `srvr`, so it is added to lists without it.
      const allowed =
        list?.includes('srvr') === false ? { '4lw.commands.whitelist': `${list}, srvr` } : config
      const answers = await Promise.all(
        [reference, serverUnderTest].map(async (kind) => {
          await using server = await Server.start({ kind, config: allowed })
          const texts: string[] = []
          for (const name of ['ruok', 'stat', 'cons', 'dump', 'gtmk', 'isro'])
            texts.push(await fourLetterWord(server.port, name))
          return texts
        }),
      )
      expect(numbers(shape(answers[1]!.join('\n')))).toEqual(numbers(shape(answers[0]!.join('\n'))))
    },
  )
})
