import { MemoryDisk } from '@zabra/runtime'

/** Returns an empty disk with a folder. */
export async function diskWithFolder(folder: string): Promise<MemoryDisk> {
  const disk = new MemoryDisk()
  await disk.makeFolder(folder)
  return disk
}

/** Holds all writes to a disk back. Returns a function that lets them continue. */
export function holdWrites(disk: MemoryDisk): () => void {
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  disk.beforeWrite = () => held
  return () => {
    disk.beforeWrite = undefined
    release()
  }
}
