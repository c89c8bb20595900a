import type { Mutation } from './mutation.ts'

const logFile = 'server/src/persistence/log-file.ts'
const replay = 'server/src/persistence/replay.ts'

export const storage: readonly Mutation[] = [
  {
    name: 'acknowledge-before-sync',
    mistake: 'Writes are answered when the system has them, before they are on the disk.',
    servers: 1,
    changes: [
      { file: logFile, find: '{ create: true, durable })', replace: '{ create: true, durable: false })' },
    ],
  },
  {
    name: 'log-folder-not-synced',
    mistake: 'The name of a new log is not made durable.',
    servers: 1,
    changes: [
      {
        file: logFile,
        find: 'if (isNew) await this.#options.disk.syncFolder(this.#options.folder)',
        replace: '',
      },
    ],
  },
  {
    name: 'unsynced-tail-trusted',
    mistake: 'A start serves what the system shows of the log without making it durable.',
    servers: 1,
    changes: [
      {
        file: replay,
        find: 'await rewriteTail(disk, folder, this.#newestFile.path, this.#newestFile.end)',
        replace: '{}',
      },
    ],
  },
  {
    name: 'sync-error-ignored',
    mistake: 'A failed sync of the log counts as done.',
    servers: 1,
    changes: [
      {
        file: logFile,
        find: 'await this.#writer!.write(bytes, this.#position)',
        replace: 'await this.#writer!.write(bytes, this.#position).catch(() => {})',
      },
    ],
  },
  {
    name: 'sessions-lost-in-replay',
    mistake: 'Sessions that began behind the newest snapshot are forgotten by a restart.',
    servers: 1,
    changes: [
      {
        file: replay,
        find: 'if (txn.type === OpCode.createSession) this.sessions.set(header.sessionId, txn.timeOut)',
        replace: '',
      },
    ],
  },
  {
    name: 'ended-sessions-return',
    mistake: 'Sessions that ended behind the newest snapshot are back after a restart.',
    servers: 1,
    changes: [
      {
        file: replay,
        find: 'if (txn.type === OpCode.closeSession) this.sessions.delete(header.sessionId)',
        replace: '',
      },
    ],
  },
]
