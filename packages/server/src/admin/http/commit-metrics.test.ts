import { OpCode, writeMultiRequest } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { Ensemble } from '../../ensemble/testing/ensemble.ts'
import { createServer } from '../../server.ts'
import { TestServer } from '../../testing/test-server.ts'
import { metricsOf, valueOf } from './testing/metrics.ts'

/** Returns number and sum of the values of a summary. */
const summaryOf = (text: string, name: string): [count: number, sum: number] => [
  valueOf(text, `${name}_count`),
  valueOf(text, `${name}_sum`),
]

/** Returns how number and sum of the values of summaries have grown. */
const grown = (before: string, after: string, ...names: string[]): Record<string, [number, number]> =>
  Object.fromEntries(
    names.map((name) => {
      const [was, is] = [summaryOf(before, name), summaryOf(after, name)]
      return [name, [is[0] - was[0], is[1] - was[1]]]
    }),
  )

describe('the metrics of Apache ZooKeeper', () => {
  it('have what waits in the lines of sessions, and what is answered, once for each turn with commits', async () => {
    const { fixture, client } = await TestServer.withClient()
    const other = await fixture.connect()
    const before = await metricsOf(fixture)
    const unblock = fixture.blockDisk()
    client.batch(() => {
      client.create(1, '/a')
      client.read(2, OpCode.exists, '/a')
      client.read(3, OpCode.getData, '/a')
    })
    await fixture.advance(200)
    other.batch(() => {
      other.read(1, OpCode.exists, '/')
      other.create(2, '/b')
      other.read(3, OpCode.exists, '/b')
    })
    await fixture.advance(300)
    unblock()
    await fixture.untilIdle()
    expect([client.takeReceived(), other.takeReceived()]).toEqual([
      ['1:0', '2:0', '3:0'],
      ['1:0', '2:0', '3:0'],
    ])
    const after = await metricsOf(fixture)
    // The first sync has the write of the one client, the second one that of the other. The read that waited for nothing counts with the first.
    expect(
      grown(
        before,
        after,
        'pending_session_queue_size',
        'requests_in_session_queue',
        'read_commit_proc_req_queued',
        'write_commit_proc_req_queued',
        'commit_commit_proc_req_queued',
        'session_queues_drained',
        'reads_after_write_in_session_queue',
        'reads_issued_from_session_queue',
        'read_commit_proc_issued',
        'write_commit_proc_issued',
        'read_commitproc_time_ms',
        'write_batch_time_in_commit_processor',
        'commit_process_time',
        'prep_processor_queue_size',
      ),
    ).toEqual({
      pending_session_queue_size: [2, 3],
      requests_in_session_queue: [2, 7],
      read_commit_proc_req_queued: [2, 4],
      write_commit_proc_req_queued: [2, 3],
      commit_commit_proc_req_queued: [2, 2],
      session_queues_drained: [2, 2],
      reads_after_write_in_session_queue: [2, 3],
      reads_issued_from_session_queue: [2, 3],
      read_commit_proc_issued: [2, 4],
      write_commit_proc_issued: [2, 2],
      read_commitproc_time_ms: [2, 800],
      write_batch_time_in_commit_processor: [2, 0],
      commit_process_time: [2, 0],
      prep_processor_queue_size: [2, 0],
    })
    await fixture.stop()
  })

  it('take no value for turns without commits, and count what leaves with a connection no more', async () => {
    const { fixture, client } = await TestServer.withClient()
    const other = await fixture.connect()
    const before = await metricsOf(fixture)
    for (let i = 0; i < 10; i++) client.read(i, OpCode.exists, '/')
    await fixture.untilIdle()
    const between = await metricsOf(fixture)
    expect(grown(before, between, 'read_commit_proc_issued')).toEqual({ read_commit_proc_issued: [0, 0] })
    const unblock = fixture.blockDisk()
    client.create(20, '/gone')
    client.read(21, OpCode.exists, '/gone')
    await fixture.untilIdle()
    client.connection.destroy()
    await fixture.untilIdle()
    unblock()
    await fixture.untilIdle()
    other.create(1, '/a')
    await fixture.untilIdle()
    const after = await metricsOf(fixture)
    expect(valueOf(after, 'stale_replies')).toBe(1)
    expect(
      grown(
        between,
        after,
        'pending_session_queue_size',
        'requests_in_session_queue',
        'read_commit_proc_req_queued',
      ),
    ).toEqual({
      pending_session_queue_size: [2, 1],
      requests_in_session_queue: [2, 1],
      read_commit_proc_req_queued: [2, 0],
    })
    await fixture.stop()
  })

  it('have the pending changes, and the ends of sessions', async () => {
    const { fixture, client } = await TestServer.withClient()
    const unblock = fixture.blockDisk()
    client.create(1, '/a', 1)
    client.set(2, '/a', 'x')
    await fixture.untilIdle()
    const before = await metricsOf(fixture)
    const changes = (text: string): number[] => [
      valueOf(text, 'outstanding_changes_queued'),
      valueOf(text, 'outstanding_changes_removed'),
      valueOf(text, 'close_session_prep_time_count'),
    ]
    // The node and its parent, and the node again.
    expect(changes(before)).toEqual([3, 0, 0])
    unblock()
    await fixture.untilIdle()
    expect(changes(await metricsOf(fixture))).toEqual([3, 3, 0])
    client.ask(3, OpCode.closeSession)
    await fixture.untilIdle()
    const [added, removed, ends] = changes(await metricsOf(fixture))
    expect([added, ends]).toEqual([removed, 1])
    await fixture.command('srst')
    expect(changes(await metricsOf(fixture))).toEqual([added, removed, ends])
    await fixture.stop()
  })

  it('count the changes of a multi that fails, and those that are lost with the role, as taken away', async () => {
    const ensemble = await Ensemble.start(3)
    const leader = ensemble.leader!
    const changes = async (): Promise<number[]> => {
      const text = await metricsOf(ensemble.member(leader))
      return ['queued', 'removed'].map((what) => valueOf(text, `outstanding_changes_${what}`))
    }
    const client = await ensemble.client(leader)
    const set = (path: string) => ({ type: OpCode.setData, path, data: new Uint8Array(0), version: -1 })
    client.ask(1, OpCode.multi, (w) => writeMultiRequest(w, [set('/'), set('/zookeeper'), set('/none')]))
    await ensemble.receive(client, 1)
    expect(await changes()).toEqual([2, 2])
    for (const id of ensemble.members.keys()) if (id !== leader) ensemble.cut(id)
    client.create(2, '/lost')
    await ensemble.untilIdle()
    expect(await changes()).toEqual([4, 2])
    await ensemble.until('the end of its role', () => ensemble.server(leader).role !== 'leading')
    for (const id of ensemble.members.keys()) ensemble.heal(id)
    await ensemble.allServe()
    const [added, removed] = await changes()
    expect(removed).toBe(added)
  })

  it('say how long clients are not read because of globalOutstandingLimit', async () => {
    const { fixture, client } = await TestServer.withClient({ globalOutstandingLimit: 1 })
    const other = await fixture.connect()
    const unblock = fixture.blockDisk()
    for (let i = 1; i < 4; i++) client.create(i, `/a${i}`)
    await fixture.untilIdle()
    other.create(1, '/b')
    await fixture.advance(300)
    unblock()
    await fixture.untilIdle()
    const text = await metricsOf(fixture)
    expect(valueOf(text, 'request_throttle_wait_count')).toBeGreaterThan(0)
    const [count, sum] = summaryOf(text, 'request_throttle_queue_time_ms')
    expect(count).toBeGreaterThan(0)
    expect(sum).toBe(300)
    await fixture.stop()
  })

  it('have the bytes that a client does not read, when its socket takes no more', async () => {
    const { fixture, client } = await TestServer.withClient()
    client.create(1, '/a', 0, 'x'.repeat(300_000))
    await fixture.untilIdle()
    expect(summaryOf(await metricsOf(fixture), 'netty_queued_buffer_capacity')).toEqual([0, 0])
    client.connection.pause()
    for (let i = 2; i < 8; i++) client.read(i, OpCode.getData, '/a')
    await fixture.untilIdle()
    const [count, sum] = summaryOf(await metricsOf(fixture), 'netty_queued_buffer_capacity')
    expect(count).toBeGreaterThan(0)
    expect(sum / count).toBeGreaterThan(200_000)
    client.connection.resume()
    await fixture.stop()
  })

  it('have the times for which the event loop was held, each once', async () => {
    const fixture = await TestServer.start()
    await fixture.stop()
    const platform = fixture.platform()
    const holds: number[] = []
    const system = { ...platform.system, longHolds: () => ({ count: holds.length, last: holds.slice(-2) }) }
    fixture.server = await createServer(fixture.settings, { ...platform, system })
    holds.push(150, 250)
    expect(summaryOf(await metricsOf(fixture), 'jvm_pause_time_ms')).toEqual([2, 400])
    holds.push(1000)
    expect(summaryOf(await metricsOf(fixture), 'jvm_pause_time_ms')).toEqual([3, 1400])
    await fixture.command('srst')
    expect(summaryOf(await metricsOf(fixture), 'jvm_pause_time_ms')).toEqual([3, 1400])
    await fixture.stop()
  })

  it('of an ensemble have the ways of writes between its members', async () => {
    const ensemble = await Ensemble.start(3)
    const leader = ensemble.leader!
    const [one, two] = [...ensemble.members.keys()].filter((id) => id !== leader) as [number, number]
    const client = await ensemble.client(one)
    for (let i = 1; i <= 64; i++) client.create(i, `/n${i}`)
    await ensemble.receive(client, 64)
    await ensemble.advance(1000)
    const [leading, own, other] = await Promise.all(
      [leader, one, two].map((id) => metricsOf(ensemble.member(id))),
    )
    // One write in 32 is measured.
    expect(valueOf(leading!, 'proposal_process_time_count')).toBe(2)
    expect(valueOf(leading!, 'server_write_committed_time_ms_count')).toBe(2)
    expect(valueOf(other!, 'server_write_committed_time_ms_count')).toBe(2)
    expect(valueOf(own!, 'server_write_committed_time_ms_count')).toBe(0)
    expect(valueOf(own!, 'proposal_process_time_count')).toBe(0)
    for (const text of [own!, other!])
      expect(valueOf(text, 'proposal_ack_creation_latency_count')).toBeGreaterThan(0)
    const [turns, waiting] = summaryOf(own!, 'learner_request_processor_queue_size')
    expect([turns > 0, waiting >= 64]).toEqual([true, true])
    expect(valueOf(leading!, 'learner_request_processor_queue_size_count')).toBe(0)
    expect(valueOf(own!, 'prep_processor_queue_size_count')).toBe(0)
    for (const id of [one, two]) {
      const key = `{key="${id}",}`
      const [sizes, times] = ['size', 'time_ms'].map((what) => `learner_handler_qp_${what}`)
      // A proposal and a commit for each write.
      expect(valueOf(leading!, `${sizes}_sum${key}`)).toBeGreaterThanOrEqual(128)
      expect(valueOf(leading!, `${times}_count${key}`)).toBeGreaterThan(0)
    }
    expect(own).not.toContain('learner_handler_qp_size{')
  })

  it('have the way of a transaction through a follower with observers', async () => {
    const ensemble = new Ensemble(4, { observers: [4] })
    for (const id of [1, 4]) {
      const member = ensemble.member(id)
      member.settings = Object.freeze({ ...member.settings, observerMasterPort: 5001 })
    }
    for (const member of ensemble.members.values()) await member.start()
    await ensemble.allServe()
    const client = await ensemble.client(4)
    await ensemble.create(client, '/a')
    const [master, observer] = [await metricsOf(ensemble.member(1)), await metricsOf(ensemble.member(4))]
    // The session and the node.
    expect(valueOf(master, 'om_commit_process_time_ms_count')).toBe(2)
    expect(valueOf(master, 'om_proposal_process_time_ms_count')).toBe(2)
    expect(valueOf(master, 'learner_handler_qp_size_count{key="4",}')).toBeGreaterThan(0)
    expect(valueOf(observer, 'om_commit_process_time_ms_count')).toBe(0)
  })
})
