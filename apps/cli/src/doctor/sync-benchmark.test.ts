import { MemoryDisk } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { idsOf } from '../testing/findings.ts'
import { BENCHMARK_FILE, checkSyncs, measureSyncs } from './sync-benchmark.ts'

/** Returns a clock on which each of `steps` passes in turn, the last one for ever. */
function clockOf(steps: readonly number[]): () => number {
  let [now, call] = [0, 0]
  return () => {
    now += call === 0 ? 0 : steps[Math.min(call - 1, steps.length - 1)]!
    call++
    return now
  }
}

function diskWith(folder: string): MemoryDisk {
  const disk = new MemoryDisk()
  disk.putFile(`${folder}/myid`, new Uint8Array(1))
  return disk
}

it('the speed of a disk is measured for the given time, and no file is left', async () => {
  const disk = diskWith('/data')
  const times = await measureSyncs({ disk, folder: '/data', seconds: 1, now: clockOf([2]) })
  expect(times).toEqual({ count: 500, p50: 2, p99: 2, perSecond: 500 })
  expect(disk.paths()).toEqual(['/data/myid'])
})

it('a file that an earlier measurement has left is replaced', async () => {
  const disk = diskWith('/data')
  disk.putFile(`/data/${BENCHMARK_FILE}`, new Uint8Array(9))
  expect((await measureSyncs({ disk, folder: '/data', seconds: 0.01, now: clockOf([5]) })).count).toBe(2)
  expect(disk.paths()).toEqual(['/data/myid'])
})

it('a measurement that is aborted, or that the disk refuses, leaves no file', async () => {
  const disk = diskWith('/data')
  const stop = new AbortController()
  stop.abort(new Error('stopped'))
  const options = { disk, folder: '/data', seconds: 1, now: clockOf([1]), signal: stop.signal }
  await expect(measureSyncs(options)).rejects.toThrow('stopped')
  disk.injectFault = (call) => (call === 'write' ? { code: 'ENOSPC' } : undefined)
  await expect(measureSyncs({ ...options, signal: new AbortController().signal })).rejects.toMatchObject({
    code: 'ENOSPC',
  })
  expect(disk.paths()).toEqual(['/data/myid'])
})

it('a slow disk is a finding, and each disk has a line with its rate', async () => {
  const quick = { count: 1000, p50: 1, p99: 3, perSecond: 900 }
  expect(await idsOf(checkSyncs('/data', quick))).toEqual(['sync-rate'])
  expect(await idsOf(checkSyncs('/data', { ...quick, p99: 40 }))).toEqual(['slow-disk', 'sync-rate'])
})
