import { schedule } from './schedule.ts'
import { duration, list, optional, pattern, size, text } from './value-types.ts'
import { row } from './row.ts'

const group = 'Backups'

/** The backups that the server writes. */
export const backupRows = {
  backupTargets: row({
    group,
    key: 'backup.target',
    isOwn: true,
    type: list('targets separated by commas, such as /backup/orders or s3://bucket/orders'),
    defaultValue: [] as readonly string[],
    defaultText: 'none',
    description:
      'Where the server writes backups: folders, or `s3://bucket/prefix`. Set the same on all members: one of them has the duty at a time.',
  }),
  backupSchedule: row({
    group,
    key: 'backup.schedule',
    isOwn: true,
    isChangeable: true,
    type: schedule(),
    defaultValue: 3_600_000 as number | string,
    description:
      'Time between two snapshots in a target, or when they are written, as cron says it: `30 3 * * *` is 3:30 in each night, in UTC. 0 writes one only where the log cannot go on without.',
  }),
  backupVerifyMs: row({
    group,
    key: 'backup.verify',
    isChangeable: true,
    isOwn: true,
    type: duration('ms', { min: 0 }),
    defaultValue: 86_400_000,
    description:
      'Time between two verifications of the newest backup in a target: the member on duty loads the snapshot, replays the log, and compares nodes and digest. That takes the memory of a second tree. 0 leaves it out.',
  }),
  backupLogIntervalMs: row({
    group,
    key: 'backup.logInterval',
    isChangeable: true,
    isOwn: true,
    type: duration('ms', { min: 0, max: 86_400_000 }),
    defaultValue: 5000,
    description:
      'Time in which a transaction gets into a part of the log in a target, and so what is lost with all members at most. Parts are written earlier where 4 MiB of log have come, and none while nothing is committed. 0 writes the log with snapshots only.',
  }),
  backupRetain: row({
    group,
    key: 'backup.retain',
    isOwn: true,
    type: optional(
      pattern(
        /^\d{1,6}[mhdw]:(?:all|\d{1,6}[mhdw])(?:,\d{1,6}[mhdw]:(?:all|\d{1,6}[mhdw]))*$/,
        'rules as AGE:EVERY, such as 24h:all,14d:1d,90d:7d',
      ),
    ),
    defaultValue: '24h:all,14d:1d,90d:7d',
    description: 'Which snapshots are kept: for each age, all or one in a time.',
  }),
  backupKeyFile: row({
    group,
    key: 'backup.encryption.keyFile',
    isOwn: true,
    type: optional(text('a file')),
    isPath: true,
    isSecretFile: true,
    defaultValue: undefined,
    defaultText: 'none: backups are not encrypted',
    description:
      'File with the key of backups: 64 hexadecimal digits. Earlier keys in further lines open the backups that they have encrypted.',
  }),
  backupMember: row({
    group,
    key: 'backup.member',
    isOwn: true,
    type: pattern(/^(?:any|observer|follower|\d{1,3})$/, 'any, observer, follower or the id of a member'),
    defaultValue: 'any',
    description:
      'Which members have the duty of backups where they can. With `any`, observers come before followers, and the leader last. Others go on with the backups in a target where none of those does, so that there is no gap.',
  }),
  backupRateBytes: row({
    group,
    key: 'backup.rate',
    isChangeable: true,
    isOwn: true,
    type: size('B', { min: 0 }),
    defaultValue: 0,
    description: 'Most bytes in a second that a backup reads. 0 sets no limit.',
  }),
  backupS3Endpoint: row({
    group,
    key: 'backup.s3.endpoint',
    isOwn: true,
    // Without credentials, which settings would show and logs would have.
    type: optional(
      pattern(
        /^https?:\/\/[^\s/?#@]+\/?$/,
        'a URL without user and password, such as https://minio.example:9000',
      ),
    ),
    defaultValue: undefined,
    defaultText: 'that of Amazon',
    description: 'URL of a store with the interface of S3, which then has buckets in its paths.',
  }),
  backupS3Region: row({
    group,
    key: 'backup.s3.region',
    isOwn: true,
    type: pattern(/^[\w-]{1,40}$/, 'a region such as eu-central-1'),
    defaultValue: 'us-east-1',
    description: 'Region of the bucket.',
  }),
  backupS3CredentialsFile: row({
    group,
    key: 'backup.s3.credentialsFile',
    isOwn: true,
    type: optional(text('a file')),
    isPath: true,
    isSecretFile: true,
    defaultValue: undefined,
    defaultText: 'none',
    description:
      "File with the credentials for S3, in the form of Amazon's tools: `aws_access_key_id = …` and `aws_secret_access_key = …`. It is read again before each request.",
  }),
} as const
