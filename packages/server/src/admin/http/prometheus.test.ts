import { readFileSync } from 'node:fs'
import { CreateMode, OpCode, WatchMode } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { Ensemble } from '../../ensemble/testing/ensemble.ts'
import { TestServer } from '../../testing/test-server.ts'
import { APACHE_FAMILIES } from './apache-families.ts'
import { metricsOf, valueOf } from './testing/metrics.ts'

/** Name, type and servers of each family of Apache ZooKeeper 3.9: C, G or S; q on members, l on leaders. */
const families = readFileSync(new URL('../testdata/apache-3.9-metrics.txt', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => line.split(' ') as [name: string, type: string, of?: string])
const typeNames: Readonly<Record<string, string>> = { C: 'counter', G: 'gauge', S: 'summary' }

const typesIn = (text: string): Map<string, string> =>
  new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name!, type!]))

describe('the metrics', () => {
  it('of a standalone server and of a leader have every family of Apache ZooKeeper 3.9 with its type', async () => {
    const server = await TestServer.start()
    const ensemble = await Ensemble.start(3)
    const alone = typesIn(await metricsOf(server))
    const leading = typesIn(await metricsOf(ensemble.member(ensemble.leader!)))
    const wrong = families.flatMap(([name, type, of]) => {
      const expected = typeNames[type[0]!]
      const on = of === undefined ? [alone, leading] : [leading]
      return on.every((types) => types.get(name) === expected) ? [] : [`${name} ${expected}`]
    })
    expect(families).toHaveLength(160)
    expect(wrong).toEqual([])
    expect(alone.has('leader_uptime')).toBe(false)
    await server.stop()
  })

  it('have the quantiles of each summary of Apache ZooKeeper 3.9', async () => {
    const server = await TestServer.start()
    const text = await metricsOf(server)
    const summaries = APACHE_FAMILIES.filter(({ type, hasKeys }) => type === 'summary' && !hasKeys)
    const missing = summaries.flatMap(({ name, quantiles }) =>
      quantiles.map((q) => `${name}{quantile="${q}",}`).filter((sample) => !text.includes(`\n${sample} `)),
    )
    expect(missing).toEqual([])
    await server.stop()
  })

  it('count what clients do', async () => {
    const { fixture, client } = await TestServer.withClient()
    for (let i = 0; i < 1000; i++) client.create(i, `/n${i}`, CreateMode.PERSISTENT, 'x'.repeat(100))
    client.read(1000, OpCode.getData, '/none')
    await fixture.untilIdle()
    const text = await metricsOf(fixture)
    expect(valueOf(text, 'zabra_requests_total{op="create",result="ok"}')).toBe(1000)
    expect(valueOf(text, 'zabra_requests_total{op="getData",result="nonode"}')).toBe(1)
    expect(valueOf(text, 'updatelatency_count')).toBe(1000)
    const paths = 10 * '/n0'.length + 90 * '/n10'.length + 900 * '/n100'.length
    const inNamespaces = [...text.matchAll(/^write_per_namespace_sum\{.*\} (.*)$/gm)]
    expect(inNamespaces.reduce((sum, [, value]) => sum + Number(value), 0)).toBe(1000 * 100 + paths)
    expect(valueOf(text, 'zabra_request_seconds_bucket{kind="write",le="+Inf"}')).toBe(1000)
    // An error rate is 0 before the first error, and sees it.
    expect(valueOf(text, 'zabra_requests_total{op="create",result="systemerror"}')).toBe(0)
    expect(valueOf(text, 'zabra_requests_total{op="create",result="quotaexceeded"}')).toBe(0)
    // The session is a transaction too.
    expect(valueOf(text, 'sync_processor_request_queued')).toBe(1001)
    await fixture.stop()
  })

  it('count the bytes of reads and writes by first path element, as Apache ZooKeeper does', async () => {
    const { fixture, client } = await TestServer.withClient()
    client.create(1, '/app', CreateMode.PERSISTENT, '12345')
    client.create(2, '/app/b', CreateMode.PERSISTENT, '123')
    client.set(3, '/app/b', '1234567')
    const ops = [OpCode.getData, OpCode.exists, OpCode.getChildren, OpCode.getChildren2] as const
    for (const [index, op] of ops.entries()) client.read(4 + index, op, index < 2 ? '/app/b' : '/app')
    client.read(8, OpCode.exists, '/app/none')
    client.read(9, OpCode.getData, '/')
    client.create(10, '/app')
    client.delete(11, '/app/b')
    client.create(12, '/app/e', CreateMode.EPHEMERAL)
    client.ask(13, OpCode.closeSession)
    await fixture.untilIdle()
    const text = await metricsOf(fixture)
    expect(valueOf(text, 'write_per_namespace_count{key="app",}')).toBe(6)
    expect(valueOf(text, 'write_per_namespace_sum{key="app",}')).toBe(9 + 9 + 13 + 6 + 6 + 6)
    expect(valueOf(text, 'read_per_namespace_count{key="app",}')).toBe(4)
    expect(valueOf(text, 'read_per_namespace_sum{key="app",}')).toBe(81 + 74 + 73 + 73)
    expect(valueOf(text, 'read_per_namespace_count{key="other",}')).toBe(0)
    await fixture.stop()
    await fixture.restart()
    // The replay of the log is no write of a client.
    expect(await metricsOf(fixture)).not.toContain('key="app"')
    await fixture.stop()
  })

  it('count a long list of children, which is written over several turns, as a short one', async () => {
    const { fixture, client } = await TestServer.withClient()
    client.batch(() => {
      client.create(1, '/app')
      for (let i = 0; i < 2500; i++) client.create(2 + i, `/app/${1000 + i}`)
    })
    await fixture.untilIdle()
    client.read(3000, OpCode.getChildren, '/app')
    await fixture.untilIdle()
    expect(valueOf(await metricsOf(fixture), 'read_per_namespace_sum{key="app",}')).toBe(4 + 2500 * 4 + 68)
    await fixture.stop()
  })

  it('have at most 2,000 series with 10,000 first path elements, 10,000 users and 300 quotas of any names', async () => {
    const { fixture, client } = await TestServer.withClient({ maxClientCnxns: 0 })
    const names = Array.from({ length: 10_000 }, (_, i) => `"n\\${i}"${'x'.repeat(i % 200)}`)
    const limited = names.slice(-300)
    const quota = '/zookeeper/quota'
    client.batch(() => {
      for (const [i, name] of names.entries()) client.create(i, `/${name}`, 0, 'x')
      for (const [i, name] of limited.entries()) client.create(i, `${quota}/${name}`)
    })
    await fixture.untilIdle()
    client.batch(() => {
      for (const [i, name] of names.entries()) client.read(i, OpCode.getData, `/${name}`)
      for (const [i, name] of limited.entries())
        client.create(i, `${quota}/${name}/zookeeper_limits`, 0, 'count=1,bytes=1')
      for (const [i, name] of limited.entries()) client.create(i, `${quota}/${name}/zookeeper_stats`)
    })
    await fixture.untilIdle()
    for (let first = 0; first < 10_000; first += 99) {
      const user = await fixture.connect()
      for (let i = first; i < first + 99; i++)
        user.ask(-4, OpCode.auth, (w) => {
          w.int(0)
          w.string('digest')
          w.buffer(new TextEncoder().encode(`user${i}:secret`))
        })
    }
    await fixture.untilIdle()
    const text = await metricsOf(fixture)
    const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    const labels = series.map((line) => line.slice(0, line.lastIndexOf(' ')))
    expect(series.length).toBeGreaterThan(1000)
    expect(series.length).toBeLessThanOrEqual(2000)
    expect(new Set(labels).size).toBe(series.length)
    expect(Math.max(...labels.map(({ length }) => length))).toBeLessThan(500)
    expect(text).not.toContain('user')
    for (const name of ['zabra_tree_bytes', 'zabra_tree_nodes'])
      expect(labels.filter((label) => label.startsWith(`${name}{`))).toHaveLength(51)
    const nodes = series.filter((line) => line.startsWith('zabra_tree_nodes{'))
    expect(nodes.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)).toBe(
      // Apache ZooKeeper counts the root twice.
      valueOf(text, 'znode_count') - 2,
    )
    await fixture.stop()
  })

  it('report the sizes of first path elements at once after a change, and after a snapshot is loaded', async () => {
    const { fixture, client } = await TestServer.withClient()
    client.create(1, '/app', 0, '12345')
    client.create(2, '/app/b', 0, '123')
    client.create(3, '/late')
    await fixture.untilIdle()
    const expectSizes = async (bytes: number, nodes: number): Promise<void> => {
      const text = await metricsOf(fixture)
      expect(valueOf(text, 'zabra_tree_bytes{namespace="/app"}')).toBe(bytes)
      expect(valueOf(text, 'zabra_tree_nodes{namespace="/app"}')).toBe(nodes)
      expect(valueOf(text, 'zabra_tree_nodes{namespace="/zookeeper"}')).toBeGreaterThan(2)
    }
    await expectSizes(4 + 5 + 6 + 3, 2)
    await fixture.server.snapshot()
    await fixture.stop()
    await fixture.restart()
    await expectSizes(4 + 5 + 6 + 3, 2)
    const again = await fixture.connect()
    again.delete(1, '/app/b')
    await fixture.untilIdle()
    await expectSizes(4 + 5, 1)
    await fixture.stop()
  })

  it('count the lines of the log by level, and sessions by the class of their timeout', async () => {
    const { fixture } = await TestServer.withClient()
    await fixture.client({ timeout: 4500 })
    const written = fixture.logLines.filter(({ level }) => level === 'info').length
    const text = await metricsOf(fixture)
    expect(written).toBeGreaterThan(0)
    expect(valueOf(text, 'zabra_log_lines_total{level="info"}')).toBe(written)
    expect(valueOf(text, 'zabra_log_lines_total{level="error"}')).toBe(0)
    expect(valueOf(text, 'zabra_sessions_by_timeout{up_to_seconds="5"}')).toBe(1)
    expect(valueOf(text, 'zabra_sessions_by_timeout{up_to_seconds="+Inf"}')).toBe(0)
    await fixture.stop()
  })

  it('count refusals by their reasons, which are there from the begin', async () => {
    const { fixture } = await TestServer.withClient({ maxClientCnxns: 1 })
    await fixture.open()
    await fixture.untilIdle()
    const text = await metricsOf(fixture)
    expect(valueOf(text, 'zabra_connections_refused_total{reason="address"}')).toBe(1)
    for (const reason of [
      'total',
      'descriptors',
      'not_serving',
      'stopping',
      'draining',
      'tokens',
      'read_only',
      'behind',
      'sessions',
      'memory',
      'tls',
    ])
      expect(valueOf(text, `zabra_connections_refused_total{reason="${reason}"}`)).toBe(0)
    await fixture.stop()
  })

  it('count connections that come between two roles and are no commands', async () => {
    const ensemble = await Ensemble.start(3)
    const [id, ...others] = [...ensemble.members.keys()].filter((one) => one !== ensemble.leader)
    for (const one of [...others, ensemble.leader!]) await ensemble.member(one).crash()
    await ensemble.until('a member without a role', () => ensemble.server(id!).role === 'looking')
    for (const bytes of ['ruok', 'GET ']) {
      const wire = await ensemble.network.connect(ensemble.server(id!).addresses.client)
      wire.write(new TextEncoder().encode(bytes))
    }
    await ensemble.untilIdle()
    for (const one of others) await ensemble.member(one).start()
    await ensemble.until('a role that serves', () => ensemble.server(id!).serving)
    const text = await metricsOf(ensemble.member(id!))
    expect(valueOf(text, 'zabra_connections_refused_total{reason="not_serving"}')).toBe(1)
    expect(valueOf(text, 'cnxn_closed_without_zk_server_running')).toBe(1)
  })

  it('tell the time without a role on each member, and that without a leader on the one that leads then', async () => {
    const ensemble = await Ensemble.start(3)
    const first = ensemble.leader!
    const counts = async (id: number): Promise<readonly number[]> => {
      const text = await metricsOf(ensemble.member(id))
      return ['', 'leader_'].map((name) => valueOf(text, `${name}unavailable_time_count`))
    }
    expect(await counts(first)).toEqual([1, 1])
    await ensemble.member(first).crash()
    await ensemble.until('another leader', () => ![undefined, first].includes(ensemble.leader))
    const others = [1, 2, 3].filter((id) => id !== first)
    await ensemble.until('roles that serve', () => others.every((id) => ensemble.server(id).serving))
    for (const id of others) expect(await counts(id)).toEqual([2, id === ensemble.leader ? 1 : 0])
  })

  it('count handshakes that are refused', async () => {
    const { fixture } = await TestServer.withClient({ maxSessions: 1 })
    await fixture.client()
    await fixture.client({ seen: 999n })
    const text = await metricsOf(fixture)
    expect(valueOf(text, 'zabra_connections_refused_total{reason="sessions"}')).toBe(1)
    expect(valueOf(text, 'zabra_connections_refused_total{reason="behind"}')).toBe(1)
    await fixture.command('srst')
    // A counter that falls looks like a restart.
    expect(valueOf(await metricsOf(fixture), 'zabra_connections_refused_total{reason="behind"}')).toBe(1)
    await fixture.stop()
  })

  it('go on counting after srst, which sets mntr to 0', async () => {
    const ensemble = await Ensemble.start(3)
    const leader = ensemble.member(ensemble.leader!)
    const client = await ensemble.client(leader.id)
    client.read(1, OpCode.exists, '/a', true)
    await ensemble.create(client, '/a')
    await ensemble.advance(100)
    const countsIn = (text: string): ReadonlyMap<string, number> => {
      const counted = [...typesIn(text)].filter(([, type]) => type !== 'gauge').map(([name]) => name)
      const lines = text.split('\n').filter((line) => !line.startsWith('#') && !line.includes('quantile='))
      return new Map(
        lines
          .filter((line) => counted.some((name) => line.startsWith(name)))
          .map((line) => [line.slice(0, line.lastIndexOf(' ')), valueOf(line, line.split(' ')[0]!)]),
      )
    }
    const before = countsIn(await metricsOf(leader))
    const mntr = await ensemble.command(leader.id, 'mntr')
    await ensemble.command(leader.id, 'srst')
    const text = await metricsOf(leader)
    const after = countsIn(text)
    const fallen = [...before].filter(([sample, value]) => !(after.get(sample)! >= value))
    expect(before.size).toBeGreaterThan(300)
    expect(fallen).toEqual([])
    expect(valueOf(text, 'node_created_watch_count_count')).toBe(1)
    const counted =
      /^zk_(?:cnt_updatelatency|proposal_count|looking_count|connection_request_count|sum_sync_processor_batch_size|watch_bytes)\t(\d+)$/gm
    const numbersIn = (answer: string) => [...answer.matchAll(counted)].map(([, value]) => Number(value))
    expect(numbersIn(mntr).every((value) => value > 0)).toBe(true)
    expect(numbersIn(await ensemble.command(leader.id, 'mntr'))).toEqual([0, 0, 0, 0, 0, 0])
  })

  it('have the files, the commit path and the limits of an ensemble', async () => {
    const ensemble = await Ensemble.start(3, { auditEnabled: true })
    const client = await ensemble.client(ensemble.leader!)
    await ensemble.create(client, '/a')
    // The files that were there at the start are reported, until a scrape after ten seconds begins to read them again.
    await ensemble.advance(10_000)
    await metricsOf(ensemble.member(ensemble.leader!))
    await ensemble.advance(1000)
    const leading = await metricsOf(ensemble.member(ensemble.leader!))
    expect(valueOf(leading, 'zabra_log_bytes')).toBeGreaterThan(100)
    expect(valueOf(leading, 'zabra_snapshot_bytes')).toBeGreaterThan(100)
    expect(valueOf(leading, 'zabra_quorum_ack_seconds_count')).toBeGreaterThan(0)
    expect(valueOf(leading, 'zabra_fsync_batch_count')).toBeGreaterThan(0)
    expect(valueOf(leading, 'zabra_config_version')).toBe(0)
    expect(valueOf(leading, 'zabra_audit_lost_total')).toBe(0)
    const follower = [...ensemble.members.values()].find(({ id }) => id !== ensemble.leader)!
    expect(valueOf(await metricsOf(follower), 'zabra_propagation_seconds_count')).toBeGreaterThan(0)
  })

  it('report percentiles of the last ten minutes, and counts since the start', async () => {
    const { fixture, client } = await TestServer.withClient()
    client.read(1, OpCode.exists, '/a', true)
    client.create(2, '/a')
    await fixture.untilIdle()
    const before = await metricsOf(fixture)
    expect(valueOf(before, 'updatelatency{quantile="0.5",}')).toBe(0)
    expect(valueOf(before, 'node_created_watch_count{quantile="0.5",}')).toBe(1)
    await fixture.advance(720_000)
    const text = await metricsOf(fixture)
    expect(valueOf(text, 'updatelatency{quantile="0.5",}')).toBeNaN()
    expect(valueOf(text, 'updatelatency_count')).toBe(1)
    expect(valueOf(text, 'node_created_watch_count{quantile="0.5",}')).toBeNaN()
    expect(valueOf(text, 'node_created_watch_count_count')).toBe(1)
    await fixture.stop()
  })

  it('report no percentile of anything that is older than ten minutes', async () => {
    const ensemble = await Ensemble.start(3)
    const leader = ensemble.member(ensemble.leader!)
    const [follower] = [...ensemble.members.values()].filter(({ id }) => id !== leader.id)
    const client = await ensemble.client(leader.id)
    for (let i = 1; i <= 64; i++) client.create(i, `/a${i}`)
    client.read(65, OpCode.getData, '/a1')
    await ensemble.receive(client, 65)
    const percentilesOf = (text: string): string[] =>
      // Heartbeats are packets for learners.
      text.split('\n').filter((line) => /^(?!learner_handler).*quantile="(?!.* NaN$)/.test(line))
    expect(percentilesOf(await metricsOf(leader)).length).toBeGreaterThan(30)
    // The session expires first.
    await ensemble.advance(1_300_000)
    for (const member of [leader, follower!]) expect(percentilesOf(await metricsOf(member))).toEqual([])
  })

  it('report no percentile of the time before a member was without a role for ten minutes', async () => {
    const ensemble = await Ensemble.start(3)
    const id = ensemble.leader!
    const client = await ensemble.client(id)
    for (let i = 1; i <= 64; i++) client.create(i, `/a${i}`)
    await ensemble.receive(client, 64)
    const others = [1, 2, 3].filter((one) => one !== id)
    for (const one of others) await ensemble.member(one).crash()
    await ensemble.until('a member without a role', () => ensemble.server(id).role === 'looking')
    await ensemble.advance(700_000)
    await ensemble.member(others[0]!).start()
    await ensemble.until('a role that serves', () => ensemble.server(id).serving)
    const text = await metricsOf(ensemble.member(id))
    for (const name of ['updatelatency', 'quorum_ack_latency', 'write_commitproc_time_ms'])
      expect(valueOf(text, `${name}{quantile="0.5",}`)).toBeNaN()
    expect(text).toContain('write_per_namespace{key="a1",quantile="0.5",} NaN')
  })

  it('say what the start took, and how many transactions it read', async () => {
    const { fixture, client } = await TestServer.withClient()
    client.create(1, '/a')
    await fixture.untilIdle()
    await fixture.stop()
    await fixture.restart()
    const text = await metricsOf(fixture)
    expect(valueOf(text, 'startup_txns_loaded_sum')).toBeGreaterThanOrEqual(2)
    expect(valueOf(text, 'dbinittime_count')).toBe(1)
    await fixture.stop()
  })

  it('report limits and usage of quotas, and no series for a limit that cannot be parsed', async () => {
    const { fixture, client } = await TestServer.withClient()
    const quota = '/zookeeper/quota'
    client.create(1, '/app', 0, 'four')
    client.create(2, `${quota}/app`)
    client.create(3, `${quota}/app/zookeeper_limits`, 0, 'count=10,bytes=100')
    client.create(4, `${quota}/app/zookeeper_stats`, 0, 'count=0,bytes=0')
    await fixture.untilIdle()
    const text = await metricsOf(fixture)
    expect(valueOf(text, 'quota_bytes_limit_per_namespace{key="/app",}')).toBe(100)
    expect(valueOf(text, 'quota_bytes_usage_per_namespace{key="/app",}')).toBe(4)
    client.set(5, `${quota}/app/zookeeper_limits`, 'nonsense')
    await fixture.untilIdle()
    expect(await metricsOf(fixture)).not.toContain('key="/app"')
    await fixture.stop()
  })

  it('count the writes that hard quotas refuse by first path element, on the leader', async () => {
    const ensemble = await Ensemble.start(3, { enforceQuota: true })
    const [follower] = [...ensemble.members.keys()].filter((id) => id !== ensemble.leader)
    const client = await ensemble.client(follower!)
    const quota = '/zookeeper/quota/app/sub'
    const paths = ['/app', '/app/sub', '/zookeeper/quota/app', quota, `${quota}/zookeeper_stats`]
    for (const [index, path] of paths.entries()) client.create(index, path)
    client.create(10, `${quota}/zookeeper_limits`, 0, 'count=-1,bytes=-1,byteHardLimit=3')
    await ensemble.receive(client, 6)
    client.set(11, '/app/sub', 'long')
    client.create(12, '/app/sub/a', 0, 'long')
    client.create(13, '/app/sub/a', 0, 'abc')
    expect(await ensemble.receive(client, 3)).toEqual(['11:-125', '12:-125', '13:0'])
    // The node with the quota is gone, and is created again.
    client.delete(14, '/app/sub/a')
    client.delete(15, '/app/sub')
    expect(await ensemble.receive(client, 2)).toEqual(['14:0', '15:0'])
    client.create(16, '/app/sub', 0, 'long')
    expect(await ensemble.receive(client, 1)).toEqual(['16:-125'])
    const leading = await metricsOf(ensemble.member(ensemble.leader!))
    expect(valueOf(leading, 'quota_exceeded_error_per_namespace{key="app",}')).toBe(3)
    const following = await metricsOf(ensemble.member(follower!))
    expect(following).not.toContain('quota_exceeded_error_per_namespace{')
  })

  it('look up a hundred quotas, and none at a path of more than 200 characters', async () => {
    const { fixture, client } = await TestServer.withClient()
    const quota = '/zookeeper/quota'
    let xid = 0
    const limit = (path: string, isCounted: boolean): void => {
      client.create(++xid, path)
      client.create(++xid, `${quota}${path}`)
      client.create(++xid, `${quota}${path}/zookeeper_limits`, 0, 'count=10,bytes=100')
      if (isCounted) client.create(++xid, `${quota}${path}/zookeeper_stats`, 0, 'count=0,bytes=0')
    }
    for (const path of ['/first', `/${'n'.repeat(200)}`]) limit(path, true)
    for (let i = 0; i < 99; i++) limit(`/${i}`, false)
    limit('/last', true)
    await fixture.untilIdle()
    const text = await metricsOf(fixture)
    expect([text.includes('key="/first"'), text.includes('nnn'), text.includes('key="/last"')]).toEqual([
      true,
      false,
      false,
    ])
    await fixture.stop()
  })

  it('of an ensemble measure the stages of one write in 32, the ways to its members and what waits', async () => {
    const ensemble = await Ensemble.start(3)
    const leader = ensemble.leader!
    const follower = [...ensemble.members.keys()].find((id) => id !== leader)!
    for (const id of [leader, follower]) {
      const client = await ensemble.client(id)
      for (let i = 1; i <= 64; i++) client.create(i, `/from-${id}-${i % 2}-${i}`)
      client.read(65, OpCode.sync, '/')
    }
    await ensemble.advance(3000)
    const [leading, following] = [leader, follower].map((id) => metricsOf(ensemble.member(id)))
    for (const text of await Promise.all([leading!, following!]))
      for (const stage of ['queue', 'prepare', 'proposal', 'sync', 'commit', 'apply', 'reply'])
        expect(valueOf(text, `zabra_stage_seconds_count{stage="${stage}"}`)).toBe(2)
    const text = await leading!
    expect(valueOf(text, 'prep_process_time_count')).toBe(2)
    expect(valueOf(text, `ack_latency_count{key="${follower}",}`)).toBeGreaterThanOrEqual(4)
    expect(valueOf(text, `zabra_peer_round_trip_seconds{peer="${follower}"}`)).toBeGreaterThanOrEqual(0)
    for (const queue of ['outstanding', 'throttled', 'prepare', 'commit', 'sync'])
      expect(valueOf(text, `zabra_queue_size{queue="${queue}"}`)).toBe(0)
    expect(valueOf(await following!, 'zabra_queue_size{queue="forward"}')).toBe(0)
    expect(valueOf(await following!, 'zabra_request_seconds_count{kind="sync"}')).toBe(1)
    expect(valueOf(await following!, 'zabra_request_seconds_count{kind="session"}')).toBe(1)
    expect(valueOf(await following!, 'proposal_latency_count')).toBeGreaterThan(0)
    expect(valueOf(text, 'zabra_tree_nodes{namespace="other"}')).toBeGreaterThan(50)
    // The first scrape begins the walk over the tree.
    await ensemble.advance(1)
    const again = await metricsOf(ensemble.member(leader))
    expect(valueOf(again, 'zabra_most_children')).toBeGreaterThanOrEqual(128)
  })

  it('of a learner tell how far its clock is ahead of that of its leader, once a transaction has come', async () => {
    const ensemble = await Ensemble.start(3)
    const leader = ensemble.leader!
    const [fast, slow] = [...ensemble.members.keys()].filter((id) => id !== leader) as [number, number]
    ensemble.member(fast).clockAheadMs = 5000
    ensemble.member(slow).clockAheadMs = -3000
    for (const id of [fast, slow]) await ensemble.restart(id)
    const skews = async (): Promise<number[]> => {
      const sample = `zabra_clock_skew_seconds{peer="${leader}"}`
      return Promise.all(
        [fast, slow, leader].map(async (id) => valueOf(await metricsOf(ensemble.member(id)), sample)),
      )
    }
    expect(await skews()).toEqual([NaN, NaN, NaN])
    await ensemble.create(await ensemble.client(leader), '/a')
    await ensemble.advance(100)
    const [ahead, behind, own] = await skews()
    expect(ahead).toBeCloseTo(5, 1)
    expect(behind).toBeCloseTo(-3, 1)
    expect(own).toBeNaN()
  })

  it('count watches by kind, and the time until notifications are written', async () => {
    const { fixture, client } = await TestServer.withClient()
    client.read(1, OpCode.exists, '/a', true)
    client.read(2, OpCode.getChildren, '/', true)
    for (const [index, mode] of [WatchMode.PERSISTENT, WatchMode.PERSISTENT_RECURSIVE].entries())
      client.ask(3 + index, OpCode.addWatch, (w) => {
        w.string('/b')
        w.int(mode)
      })
    client.read(5, OpCode.exists, '/a', true)
    await fixture.untilIdle()
    const kinds = async (): Promise<number[]> => {
      const text = await metricsOf(fixture)
      return ['data', 'exists', 'children', 'persistent', 'recursive'].map((kind) =>
        valueOf(text, `zabra_watches{kind="${kind}"}`),
      )
    }
    expect(await kinds()).toEqual([0, 1, 1, 1, 1])
    const other = await fixture.connect()
    other.create(1, '/a')
    await fixture.untilIdle()
    expect(await kinds()).toEqual([0, 0, 0, 1, 1])
    expect(valueOf(await metricsOf(fixture), 'zabra_notification_seconds_count')).toBe(1)
    client.read(6, OpCode.exists, '/a', true)
    client.read(7, OpCode.exists, '/c', true)
    await fixture.untilIdle()
    expect(await kinds()).toEqual([1, 1, 0, 1, 1])
    client.connection.destroy()
    await fixture.untilIdle()
    expect(await kinds()).toEqual([0, 0, 0, 0, 0])
    await fixture.stop()
  })

  it('show a sync of the log while it stalls, and the bytes behind it', async () => {
    const { fixture, client } = await TestServer.withClient()
    const unblock = fixture.blockDisk()
    client.create(1, '/a')
    await fixture.advance(1000)
    client.create(2, '/b')
    await fixture.advance(500)
    const text = await metricsOf(fixture)
    expect(valueOf(text, 'zabra_fsync_pending_seconds')).toBeCloseTo(1.5, 1)
    expect(valueOf(text, 'zabra_log_pending_bytes')).toBeGreaterThan(0)
    expect(valueOf(text, 'zabra_queue_size{queue="commit"}')).toBe(2)
    unblock()
    await fixture.untilIdle()
    expect(valueOf(await metricsOf(fixture), 'zabra_fsync_pending_seconds')).toBe(0)
    await fixture.stop()
  })

  it('of an ensemble measure how long a quorum and the way to a follower take', async () => {
    const ensemble = await Ensemble.start(3)
    const client = await ensemble.client(ensemble.leader!)
    client.create(1, '/a')
    await ensemble.advance(100)
    const leader = await metricsOf(ensemble.member(ensemble.leader!))
    expect(valueOf(leader, 'quorum_ack_latency_count')).toBeGreaterThanOrEqual(2)
    const follower = [...ensemble.members.values()].find(({ id }) => id !== ensemble.leader)!
    expect(valueOf(await metricsOf(follower), 'propagation_latency_count')).toBeGreaterThanOrEqual(1)
  })
})
