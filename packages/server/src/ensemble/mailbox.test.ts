import { ProtocolError } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { Mailbox, SerialExecutor, type StateMachine } from './mailbox.ts'

/** Returns a state machine that asks for the work that `step` returns. */
function machineOf<Input, Work>(step: (input: Input) => readonly Work[]): StateMachine<Input, Work> {
  const works: Work[] = []
  return { step: (input) => void works.push(...step(input)), nextWork: () => works.shift() }
}

describe('a mailbox', () => {
  it('performs all work of an input before it hands over the next one', () => {
    const log: string[] = []
    const mailbox: Mailbox<string, string> = new Mailbox({
      machine: machineOf((input) => [`${input} 1`, `${input} 2`]),
      perform: (work) => {
        log.push(work)
        if (work === 'a 1') mailbox.enqueue('b')
      },
      failed: (error) => log.push(String(error)),
    })
    mailbox.post('a')
    expect(log).toEqual(['a 1', 'a 2', 'b 1', 'b 2'])
  })

  it('performs the work of a direct call after all work that was returned before', () => {
    const log: string[] = []
    const machine = machineOf((input: string) => [`${input} 1`, `${input} 2`])
    const mailbox: Mailbox<string, string> = new Mailbox({
      machine,
      perform: (work) => {
        log.push(work)
        if (work !== 'a 1') return
        machine.step('direct')
        mailbox.drain()
      },
      failed: (error) => log.push(String(error)),
    })
    mailbox.post('a')
    expect(log).toEqual(['a 1', 'a 2', 'direct 1', 'direct 2'])
  })

  it('performs the work of direct calls at the end of their turn, even if a peer ends it with an error', () => {
    const log: string[] = []
    const machine = machineOf((input: string) => [`${input} 1`])
    const failed = (error: unknown) => log.push(String(error))
    const mailbox = new Mailbox<string, string>({ machine, perform: (work) => log.push(work), failed })
    const malformed = new ProtocolError('malformed', 0, 'a field')
    const turn = () =>
      mailbox.run(() => {
        for (const input of ['a', 'b']) machine.step(input)
        log.push('end')
        throw malformed
      })
    expect(turn).toThrow(malformed)
    expect(log).toEqual(['end', 'a 1', 'b 1'])
  })

  it('performs nothing more once work has stopped it', () => {
    const log: string[] = []
    const mailbox: Mailbox<string, string> = new Mailbox({
      machine: machineOf((input) => [input, 'never']),
      perform: (work) => {
        log.push(work)
        mailbox.enqueue('queued')
        mailbox.stop()
      },
      failed: (error) => log.push(String(error)),
    })
    mailbox.post('a')
    mailbox.post('b')
    expect([log, mailbox.isStopped]).toEqual([['a'], true])
  })

  it('rethrows the error of a peer and fails with any other one', () => {
    const failures: unknown[] = []
    const mailbox = new Mailbox<Error, never>({
      machine: machineOf((error) => {
        throw error
      }),
      perform() {},
      failed: (error) => failures.push(error),
    })
    const malformed = new ProtocolError('malformed', 0, 'a field')
    expect(() => mailbox.post(malformed)).toThrow(malformed)
    expect([failures, mailbox.isStopped]).toEqual([[], false])
    const bug = new Error('bug')
    mailbox.post(bug)
    expect([failures, mailbox.isStopped]).toEqual([[bug], true])
  })
})

describe('a serial executor', () => {
  function fixture() {
    const done: string[] = []
    const failures: unknown[] = []
    const executor = new SerialExecutor({
      resume: (action) => action(),
      failed: (error) => failures.push(error),
    })
    const gate = () => {
      let open!: () => void
      let fail!: (error: Error) => void
      const passed = new Promise<void>((resolve, reject) => {
        open = resolve
        fail = reject
      })
      return { passed, open, fail }
    }
    return { done, failures, executor, gate }
  }

  it('runs synchronous jobs at once', () => {
    const { executor, done } = fixture()
    executor.add(() => void done.push('a'))
    executor.add(() => void done.push('b'))
    expect(done).toEqual(['a', 'b'])
    expect(executor.isIdle).toBe(true)
  })

  it('runs jobs in order, however long one of them takes', async () => {
    const { executor, done, gate } = fixture()
    const slow = gate()
    executor.add(() => slow.passed.then(() => void done.push('slow')))
    executor.add(() => {
      done.push('next')
      executor.add(() => void done.push('last'))
    })
    expect(executor.isIdle).toBe(false)
    expect(done).toEqual([])
    slow.open()
    await slow.passed
    await Promise.resolve()
    await Promise.resolve()
    expect(done).toEqual(['slow', 'next', 'last'])
  })

  it('runs no job behind one that failed', async () => {
    const { executor, done, failures, gate } = fixture()
    const slow = gate()
    executor.add(() => slow.passed)
    executor.add(() => void done.push('never'))
    slow.fail(new Error('disk'))
    await executor.stop()
    expect(failures.map(String)).toEqual(['Error: disk'])
    executor.add(() => void done.push('never'))
    expect(done).toEqual([])
  })

  it('waits for the running job when it is stopped, and starts no other one', async () => {
    const { executor, done, gate } = fixture()
    const slow = gate()
    executor.add(() => slow.passed.then(() => void done.push('slow')))
    executor.add(() => void done.push('never'))
    const stopped = executor.stop().then(() => done.push('stopped'))
    slow.open()
    await stopped
    expect(done).toEqual(['slow', 'stopped'])
  })
})
