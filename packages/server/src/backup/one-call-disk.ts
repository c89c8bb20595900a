import type { Disk, DiskReader, DiskWriter } from '@zabra/runtime'
import { Mutex } from '../persistence/index.ts'

/**
 * Returns a disk that makes one call at a time, for the folder of backups. A process has four threads for the calls of all files by
 * default, and a call for a mounted folder whose machine is away does not return: four of them would stop the log of the server.
 */
export function oneCallAtATime(disk: Disk): Disk {
  const calls = new Mutex()
  const ofReader = (reader: DiskReader): DiskReader => ({
    read: (into, position) => calls.run(() => reader.read(into, position)),
    size: () => calls.run(() => reader.size()),
    close: () => calls.run(() => reader.close()),
  })
  const ofWriter = (writer: DiskWriter): DiskWriter => ({
    write: (bytes, position) => calls.run(() => writer.write(bytes, position)),
    sync: () => calls.run(() => writer.sync()),
    truncate: (length) => calls.run(() => writer.truncate(length)),
    close: () => calls.run(() => writer.close()),
  })
  return {
    list: (folder) => calls.run(() => disk.list(folder)),
    exists: (path) => calls.run(() => disk.exists(path)),
    makeFolder: (path) => calls.run(() => disk.makeFolder(path)),
    size: (path) => calls.run(() => disk.size(path)),
    modifiedAt: (path) => calls.run(() => disk.modifiedAt(path)),
    readFile: (path) => calls.run(() => disk.readFile(path)),
    replaceFile: (path, bytes, options) => calls.run(() => disk.replaceFile(path, bytes, options)),
    createFile: (path, bytes) => calls.run(() => disk.createFile(path, bytes)),
    openRead: async (path) => ofReader(await calls.run(() => disk.openRead(path))),
    openWrite: async (path, options) => ofWriter(await calls.run(() => disk.openWrite(path, options))),
    rename: (from, to) => calls.run(() => disk.rename(from, to)),
    remove: (path) => calls.run(() => disk.remove(path)),
    syncFolder: (folder) => calls.run(() => disk.syncFolder(folder)),
    space: (folder) => calls.run(() => disk.space(folder)),
    ...(disk.modeOf === undefined ? {} : { modeOf: (path) => calls.run(() => disk.modeOf!(path)) }),
    ...(disk.deviceOf === undefined ? {} : { deviceOf: (path) => calls.run(() => disk.deviceOf!(path)) }),
  }
}
