import { makeZxid } from '@zabra/protocol'
import { MemoryDisk } from '@zabra/runtime'
import { expect, it } from 'vitest'
import type { Zxid } from '../core/types.ts'
import { logName } from '../persistence/file-names.ts'
import type { AdminTarget } from './admin-target.ts'
import { hasLogAfter } from './local-source.ts'

const z = makeZxid

/** Returns whether a server has the log after a zxid, whose known history begins after `rangeAfter`, with these files. */
function has(after: Zxid, rangeAfter: Zxid, ...files: Zxid[]): Promise<boolean> {
  const disk = new MemoryDisk()
  disk.putFile('/log/acceptedEpoch', new Uint8Array())
  for (const first of files) disk.putFile(`/log/${logName(first)}`, new Uint8Array())
  return hasLogAfter(
    {
      logRange: { after: rangeAfter, epochEnds: [] },
      directories: { snapshots: '/data', logs: '/log' },
      platform: { disk } as unknown as AdminTarget['platform'],
    },
    after,
  )
}

it.each([
  [true, 'a transaction of its oldest file', z(1, 5), 0, [z(1, 5), z(1, 9)]],
  [true, 'the transaction before its oldest file', z(1, 4), 0, [z(1, 5)]],
  [true, 'the end of the epoch before its oldest file', z(1, 9), 0, [z(2, 1)]],
  [false, 'a transaction whose files were purged', z(1, 3), 0, [z(1, 5), z(1, 9)]],
  [false, 'a transaction before the snapshot of its leader', z(1, 5), z(1, 6), [z(1, 5)]],
  [true, 'the transaction of the snapshot of its leader', z(1, 6), z(1, 6), []],
  [true, 'a later transaction than its own', z(3, 1), 0, [z(1, 1)]],
] as const)(
  'says %s to whether a server has the log after %s',
  async (expected, _, after, rangeAfter, files) => {
    expect(await has(after, rangeAfter, ...files)).toBe(expected)
  },
)
