import { expect, it } from 'vitest'
import { SerialExecutor } from './serial-executor.ts'

function rig() {
  const done: string[] = []
  const failures: unknown[] = []
  const jobs = new SerialExecutor({ resume: (action) => action(), failed: (error) => failures.push(error) })
  const gate = () => {
    let open!: () => void
    let fail!: (error: Error) => void
    const passed = new Promise<void>((resolve, reject) => {
      open = resolve
      fail = reject
    })
    return { passed, open, fail }
  }
  return { done, failures, jobs, gate }
}

it('does at once what needs no waiting', () => {
  const { jobs, done } = rig()
  jobs.add(() => void done.push('a'))
  jobs.add(() => void done.push('b'))
  expect(done).toEqual(['a', 'b'])
  expect(jobs.isIdle).toBe(true)
})

it('does everything in order, however long a part takes', async () => {
  const { jobs, done, gate } = rig()
  const slow = gate()
  jobs.add(() => slow.passed.then(() => void done.push('slow')))
  jobs.add(() => {
    done.push('next')
    jobs.add(() => void done.push('last'))
  })
  expect(jobs.isIdle).toBe(false)
  expect(done).toEqual([])
  slow.open()
  await slow.passed
  await Promise.resolve()
  await Promise.resolve()
  expect(done).toEqual(['slow', 'next', 'last'])
})

it('does nothing behind a failure', async () => {
  const { jobs, done, failures, gate } = rig()
  const slow = gate()
  jobs.add(() => slow.passed)
  jobs.add(() => void done.push('never'))
  slow.fail(new Error('disk'))
  await jobs.stop()
  expect(failures.map(String)).toEqual(['Error: disk'])
  jobs.add(() => void done.push('never'))
  expect(done).toEqual([])
})

it('waits for what is being done when it is stopped, and begins nothing more', async () => {
  const { jobs, done, gate } = rig()
  const slow = gate()
  jobs.add(() => slow.passed.then(() => void done.push('slow')))
  jobs.add(() => void done.push('never'))
  const stopped = jobs.stop().then(() => done.push('stopped'))
  slow.open()
  await stopped
  expect(done).toEqual(['slow', 'stopped'])
})
