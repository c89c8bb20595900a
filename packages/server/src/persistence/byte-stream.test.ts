import { MemoryDisk } from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { FileChunks } from './byte-stream.ts'

it('a file that gzip has made a thousand times smaller is decompressed in parts of 17 MB at most', async () => {
  const size = 40 << 20
  const disk = new MemoryDisk()
  disk.putFile('/snapshot.1.gz', new Uint8Array(gzipSync(new Uint8Array(size))))
  const chunks = new FileChunks(
    await disk.openRead('/snapshot.1.gz'),
    '/snapshot.1.gz',
    nodeCompression.gunzip(),
  )
  const lengths: number[] = []
  for (let chunk = await chunks.next(); chunk !== undefined; chunk = await chunks.next())
    lengths.push(chunk.length)
  expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(size)
  expect(Math.max(...lengths)).toBeLessThan(17_000_000)
})
