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

/** Counts the files that are opened on a disk from now on and not closed. Returns a function with their number. */
export function countOpen(disk: MemoryDisk): () => number {
  let open = 0
  const counted = <T extends { close(): Promise<void> }>(file: T): T => (
    open++,
    { ...file, close: async () => void open-- }
  )
  const openRead = disk.openRead.bind(disk)
  const openWrite = disk.openWrite.bind(disk)
  disk.openRead = async (path) => counted(await openRead(path))
  disk.openWrite = async (path, options) => counted(await openWrite(path, options))
  return () => open
}
