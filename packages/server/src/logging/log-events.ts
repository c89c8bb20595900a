import { debug, error, info, warn, type LogEvent } from './log-event.ts'

/**
 * Everything that a server logs, by id. What comes before the dot is the part of the server, which may have a level of its own. Ids stay:
 * alarms of operators name them. `pnpm --filter @zabra/server gen:docs` renders docs/log-events.md.
 */
export const logEvents = {
  // The program, its configuration and its log

  'program.started': info('{started}'),
  'program.reloading': info('Reloading certificates, tokens and the audit file on SIGHUP'),
  'program.log-level': info('The level of the log was changed by SIGUSR2'),
  'program.stopping': info('Stopping on {signal}: requests in progress are finished first'),
  'program.stopped': info('Stopped; everything is on disk'),
  'program.start-ended': info('Stopped before the data were read; they are as they were'),
  'program.stack': debug('Stack of the error'),
  'program.second-signal': warn(
    'Stopping at once on a second signal',
    'The server was asked twice to stop, and exits without replies to the requests in progress.',
    'Nothing: acknowledged writes are on disk.',
  ),
  'program.lines-lost': warn(
    'Lines before this one are lost: the reader of the log was too slow',
    'The reader of standard output did not read 1 MiB of lines in time; `lost` lines are missing.',
    'Look at the program that collects the log, and lower the level of the parts that write most.',
  ),
  'config.finding': warn(
    '{finding}',
    'A line of the configuration has no effect here, or another one than in Apache ZooKeeper.',
    'Change the line as the message says; `zabra-server --check-config` shows all of them.',
  ),
  'admin.log-level': info('The level of the log was changed'),
  'admin.settings': info('Settings were changed, until the next start'),
  'admin.login-refused': info('A login to the HTTP port was refused'),

  // The disk

  'recovery.snapshot-skipped': warn(
    'Skipping {file}: {reason}',
    'A snapshot is damaged, and an older one is used, with more of the log.',
    'Check the disk. When the server is up, take a snapshot, and move the damaged file away.',
  ),
  'recovery.torn-write': warn(
    'A crash cut a write short in {file} at byte {offset}; it was never acknowledged and is removed',
    'The machine or the process stopped while the log was written.',
    'Nothing: no acknowledged write is lost.',
  ),
  'recovery.torn-log': info(
    'A log before the newest one ends in a torn write; the next log must continue where it ends',
  ),
  'recovery.digests-unchecked': warn(
    'Digests are not checked: there are names beyond ASCII, and the server that wrote them encodes names in another way than UTF-8, as Java before 18 does under the POSIX locale. Checksums are checked as always',
    'The log was written by a Java server with another encoding of text, so digests of the tree cannot be compared.',
    'Nothing here. Set `-Dfile.encoding=UTF-8` on members that run Apache ZooKeeper.',
  ),
  'recovery.epoch-raised': warn(
    'Raising currentEpoch from {from} to {to}, the epoch of the last transaction: a crash prevented the update of the file',
    'The server stopped between a write to the log and that of the file `currentEpoch`.',
    'Nothing, unless files of another server were copied here: then bring the right ones back.',
  ),
  'log.slow-sync': warn(
    'Making {entries} transactions durable took {ms} ms; every write waits for this disk',
    'The disk of the log took longer than `fsync.warningthresholdms` for one flush.',
    'Give the log a disk of its own (`dataLogDir`), or a faster one, and look for other programs that use it.',
  ),
  'log.disk-full': error(
    '{disk full}',
    'The disk of the log has no space or no quota left; writes are refused, and reads go on.',
    'Make space: the server tries again by itself. `autopurge.snapRetainCount` removes old files.',
  ),
  'log.space-found': info('There is space for the transaction log again; writes are accepted'),
  'log.still-full': debug('The disk of the log is still full'),
  'log.cut': warn(
    'Cut the log: {reason}',
    'The leader has not committed the last transactions of this member, so they were removed.',
    'Nothing: no client got a reply to them.',
  ),
  'log.files-set-aside': warn(
    'Set {count} files aside: {reason}',
    'Files of the data folder are not used any more. They are kept in a folder beside, and no data were removed.',
    'Nothing, when the reason was expected. Else copy the folder before the next start.',
  ),
  'log.old-files-removed': info('Removed {count} files that were set aside long ago'),
  'snapshot.taken': info('Took a snapshot'),
  'snapshot.failed': error(
    'A snapshot failed; the log continues and the next snapshot is taken when it is due',
    'No snapshot was written. Nothing is lost, but the log grows and the next start takes longer.',
    'Read the field `error`: most often the disk is full, or the folder may not be written.',
  ),
  'snapshot.purged': info('Removed old snapshots and logs'),
  'snapshot.unsaved-purged': warn(
    'Logs that are in no backup are too long to be kept for one, and are removed',
    'The target of backups has failed for long, or gets the log too rarely. A time between two backups cannot be restored.',
    'See why backups fail (`backup.failed`), or set `backup.logInterval` to a shorter time.',
  ),
  'snapshot.purge-failed': error(
    'Old snapshots and logs could not be removed; trying again at the next interval',
    'Old files stay, and the disk fills.',
    'Read the field `error`, and check the owner of the files in the data folders.',
  ),

  // The data of a member

  'data.not-of-ensemble': error(
    'The data of this member differ from those of its ensemble; it sets them aside',
    'The member has transactions that its ensemble never committed, or lacks some that it acknowledged.',
    'Check whether files of another server were copied here. It fetches everything from the leader by itself.',
  ),
  'data.not-of-leader': error(
    'The data of this server is not that of its leader; it will fetch all of it anew',
    'A digest or a transaction of the leader does not fit the tree of this server.',
    'Report it with the files that were set aside; check disk and memory. The member recovers by itself.',
  ),
  'data.digest-differs': error(
    'The data of this server are not those of its leader',
    'A digest of the leader does not fit the tree of this server; it loads its data again, and then all from the leader.',
    'Report it with a copy of the data folder; check disk and memory. The member recovers by itself.',
  ),
  'data.digests-not-compared': warn(
    'Digests are not compared any more: there are names beyond ASCII, and the leader encodes names in another way than UTF-8',
    'The leader runs on Java with another encoding of text.',
    'Set `-Dfile.encoding=UTF-8` on members that run Apache ZooKeeper.',
  ),
  'data.missing': warn(
    'There are no data, and db.autocreate=false says that there should be: this member does not vote until a leader has sent it everything. To start with an empty database, put an empty file initialize into dataDir',
    'The data folder is empty. The member follows without a vote until it has everything.',
    'Nothing for a replaced machine. Else mount the right folder. For a new ensemble run `zabra initialize`.',
  ),
  'data.uncommitted-applied': info('Applied what was logged and not yet committed when the role ended'),
  'data.loading-again': info(
    'Loading the data again, because the role ended before they were correct and complete',
  ),
  'data.from-leader': info('The data of the leader are on disk'),
  'data.cut-impossible': warn(
    'The history cannot be cut there; nothing is changed',
    'The files of this member do not have the place where the leader wants them cut, so it takes a snapshot of the leader.',
    'Nothing.',
  ),
  'data.replaced': info('The data are replaced; this server asks the others to take them'),
  'data.not-replaced': error(
    'The data could not be replaced',
    'A restore has failed, and this server keeps its old data.',
    'Read the field `reason`, and restore again.',
  ),
  'data.replaced-at-second-attempt': warn(
    'The files were replaced at the second attempt',
    'The disk refused a part of a restore at first. The restore is complete.',
    'Check the disk.',
  ),
  'data.restored': info('The data were replaced by a snapshot'),
  'data.not-restored': error(
    'The snapshot was not restored',
    'The snapshot that an operator has sent was refused, or could not be written. The old data stay.',
    'Read the field `reason`, and send the snapshot again.',
  ),
  'data.restore-unknown': error(
    'It is not known whether the snapshot was restored',
    'The server stopped or lost its disk while the data were being replaced.',
    'Look at the data after the next start, and restore again if they are the old ones.',
  ),

  // Elections

  'election.looking': info('Looking for a leader'),
  'election.decided': info('{decision}'),
  'election.connected': info('Connected for elections'),
  'election.connection-lost': info('A connection for elections is lost'),
  'election.unreachable': info('Another server cannot be reached'),
  'election.port-moved': info('The election port has moved to the address in the configuration'),
  'election.port-not-moved': error(
    'The election port cannot be moved to the address in the configuration',
    'A reconfiguration gives this member another election address, which cannot be bound.',
    'Free the port, or change the address of this member again.',
  ),
  'election.port-not-reopened': error(
    'The election port cannot be opened again at its old address',
    'After a failed move the old port is in use by another program, so this member takes part in no elections.',
    'Free the port, and restart this server.',
  ),
  'election.votes-refused': warn(
    'The votes of another server do not count',
    'The peer belongs to another ensemble, or has a feature level that does not fit.',
    'Read the field `reason`. Check that no server has an address of another ensemble in its configuration.',
  ),
  'election.unreadable': warn(
    'A message of another server cannot be read and was dropped',
    'The peer sends what is no vote: it is another program, or an unknown release.',
    'Check what runs at the address of the peer.',
  ),
  'election.configuration-differs': warn(
    'The configuration of another server has different members; each server uses its own configuration',
    'Two servers have different `server.N` lines, and `reconfigEnabled` is off.',
    'Give all members the same `server.N` lines, and restart them one after the other.',
  ),
  'election.configuration-newer': warn(
    'The configuration sent by another server is newer. It is adopted when a quorum of the voters known here sends it; if too few of them are left, copy the dynamic configuration file of a member to this server',
    'Members were changed while this one was down, and it may not believe one server alone.',
    'Wait. If it stays alone, stop it, and copy the newest `zoo.cfg.dynamic.*` of a member to its data folder.',
  ),
  'election.configuration-invalid': warn(
    'The configuration sent by another server is invalid; its vote counts nevertheless',
    'The peer sends a list of members that cannot be read.',
    'Check the release and the configuration of the peer.',
  ),
  'election.in-vain': warn(
    'This server cannot lead: a change of the members that it has seen needs members that are not there. It lets others lead; the change is then lost, unless a quorum has it',
    'The leader of a change of the members was cut off before other voters had it, and the members that it adds do not run.',
    'Wait for another leader. To complete the change, start the members that it adds; or ask for it again later.',
  ),
  'election.later-epoch': warn(
    'This server has accepted a later epoch than that of the leader. It follows without a vote until it takes part in an election',
    'This member was part of an election that no quorum has finished.',
    'Nothing: it votes again after an election that it joins in time. For one now, hand leadership over (zabra transfer), again if it still has no vote.',
  ),
  'election.last-epoch': error(
    'This member has accepted the last epoch and can elect no leader. Stop all members, run `zabra recover --renumber` on the data folder of the one with the last transaction, and copy its version-2 over those of the others',
    'All epochs are used, so no leader can be elected any more.',
    'Renumber the data as the message says.',
  ),
  'election.oracle-permits': warn(
    'The oracle lets this server lead without the other one',
    'The file of the oracle says 1: this one of two servers may form a quorum alone.',
    'Nothing, when the other server is down. Else make sure that the oracle never permits both.',
  ),
  'election.oracle-refuses': warn(
    'The oracle does not let this server lead without the other one',
    'The file of the oracle says something else than 1.',
    'Nothing, while the other server is up.',
  ),
  'election.oracle-unreadable': warn(
    'The file of the oracle cannot be read; this server does not lead without the other one',
    'The file that `oraclePath` names is missing, may not be read, or was not read within a tick.',
    'Create it, correct its permissions, or look at its disk.',
  ),

  // Leader and learners

  'quorum.unexpected-from-learner': warn(
    'Ignored an unexpected packet of a learner',
    'A learner has sent a packet that has no meaning at this moment.',
    'Check the release of the peer when it repeats.',
  ),
  'quorum.unexpected-from-leader': warn(
    'Ignored an unexpected packet of the leader',
    'The leader has sent a packet that has no meaning at this moment.',
    'Check the release of the leader when it repeats.',
  ),
  'quorum.unexpected-from-observer': warn(
    'Ignored an unexpected packet of an observer',
    'An observer has sent a packet that has no meaning at this moment.',
    'Check the release of the peer when it repeats.',
  ),
  'quorum.epoch-jump': warn(
    'A server has accepted an epoch far beyond that of this leader. It counts only when a quorum of voters has accepted such an epoch',
    'One member claims an epoch that no election can have reached.',
    'Check `acceptedEpoch` in the data folder of that member: the file may be damaged, or of another ensemble.',
  ),
  'quorum.not-transferred': warn(
    'Leadership is not transferred: no follower had all transactions in time',
    'An operator asked the leader to hand over, and no follower was in step within the time.',
    'Try again when followers are in step; `zabra cluster status` shows how far they are.',
  ),
  'quorum.transfer-refused': warn(
    '{refusal}',
    'An operator asked the leader to hand over at a moment when it cannot, or to a server that cannot lead.',
    'Try again when a quorum of followers is in step.',
  ),
  'quorum.unproved-identities': warn(
    'A server that no configuration names has joined without a proof of its id. The identities of its clients are not believed until a configuration names it',
    'A server follows that is no member. Its clients act as anonymous ones.',
    'Add it with `zabra member add`, or close the quorum port to it.',
  ),
  'quorum.sessions-refused': warn(
    'Refused a session of a server that no configuration names: such servers have as many as they may',
    'They have 10,000 sessions together, at this leader or at this follower that keeps observers. The client of the session has to go to another server; the other clients of its server stay.',
    'Add the server with `zabra member add`, or close the quorum port to it.',
  ),
  'quorum.syncing': info('Bringing a member up to date'),
  'quorum.synced-by': info('The leader brings this server up to date'),
  'quorum.learner-lost': info('The connection of a learner is lost'),
  'quorum.learner-closed': warn(
    'Closed the connection of a learner',
    'The leader has refused a follower or an observer, or ended its connection.',
    'Read the field `reason`, and the log of the peer.',
  ),
  'quorum.observer-lost': info('The connection of an observer is lost'),
  'quorum.observer-closed': warn(
    'Closed the connection of an observer',
    'This follower has refused an observer, or ended its connection.',
    'Read the field `reason`, and the log of the peer.',
  ),
  'quorum.change-lost': info('A change of the members that this server had seen was lost with its leader'),
  'quorum.change-forgotten': info(
    'Forgot a change of the members that was proposed and is not in the log of this server',
  ),
  'quorum.observers-served': info('Observers are kept up to date here'),
  'quorum.observers-not-served': error(
    'Observers cannot be kept up to date here: the port cannot be bound',
    'Another program uses `observerMasterPort`. Observers connect to other members.',
    'Free the port, or set another one.',
  ),
  'quorum.no-observer-master': info('No follower accepts this observer; it connects to the leader'),
  'quorum.history-not-cut': warn(
    'History cannot be cut where the leader says',
    'The files of this member do not have that place; it takes a snapshot of the leader.',
    'Nothing.',
  ),
  'quorum.connection-closed': warn(
    'A connection to the {port} was closed',
    'A program connected to a port for members and was refused, or said nothing that a member says.',
    'Read the fields `reason` and `address`. Close the port to other networks.',
  ),
  'quorum.connection-flood': warn(
    'Too many connections to the {port} have not identified themselves; the oldest are closed for now',
    'Programs open connections to a port for members and stay silent.',
    'Find them by `address`, and close the port to other networks.',
  ),
  'quorum.connection-flood-over': info('Connections to the {port} identify themselves again'),
  'quorum.port-not-bound': warn(
    'The {port} cannot be bound yet; trying again',
    'Another program uses a port for members.',
    'Find it (`ss -ltnp`), and stop it. Where another server of this machine is meant to run, give it other ports.',
  ),
  'quorum.features-asked': info('The members are asked to store a feature level for good'),
  'quorum.features-finalized': info(
    'A feature level is finalized: no member can go back to Apache ZooKeeper or a release below it',
  ),
  'quorum.reconfiguration-refused': info('A change of the ensemble was refused'),
  'quorum.secret-shared': info('All members share a secret. The passwords of new sessions follow from it'),
  'quorum.secret-incomplete': warn(
    'Servers take no part in the secret of sessions: they run Apache ZooKeeper, or did not prove who they are. Until they leave, the passwords of new sessions follow from their ids, which the stats of ephemeral nodes show',
    'A client that can read an ephemeral node can take over the session of its owner.',
    'Replace members that run Apache ZooKeeper, and let members log in (`quorumSecretFile`) or use TLS.',
  ),
  'quorum.secret-not-stored': warn(
    'The secret of sessions cannot be written to disk; it is kept in memory',
    'After a restart this member asks the others for the secret again.',
    'Read the field `reason`, and check the data folder.',
  ),

  // Roles and life of the server

  'server.joining': info('Joining the ensemble'),
  'server.role': info('This server {role}'),
  'server.role-ended': info(
    'This server is not {state} any more, and serves no clients until there is a leader',
  ),
  'server.read-only': info('There is no leader: serving read-only clients'),
  'server.second-error': warn(
    'Another error occurred while a role was ending',
    'The end of a role has more than one cause; the line before names the first.',
    'Read both reasons.',
  ),
  'server.rewrites': warn(
    'The disk has refused what the last role had written; it is written again later',
    'The disk is full, so the end of the log is not on disk yet. It was not acknowledged.',
    'Make space.',
  ),
  'server.serving': debug('Serving clients'),
  'server.ready': info('This server is ready for clients'),
  'server.not-ready': info('This server is not ready for clients'),
  'server.members': info('The members of the ensemble have changed'),
  'server.drain': info('This server drains: it refuses new sessions'),
  'server.drain-ended': info('This server does not drain any more: it accepts sessions'),
  'server.draining': info('Draining before the stop: no new sessions, connections close'),
  'server.no-permit': warn(
    'The server stops without a permit of the leader: the time for it is over',
    'The leader did not permit this stop within `stop.permitMs`, so the quorum may be lost.',
    'Restart members one after the other, and wait until each is ready.',
  ),
  'server.stopped': info('Stopped'),
  'server.files-left': error(
    'The server stops without closing its files: the disk of the data does not answer',
    'Calls for files of the data folder have not returned for seconds. Acknowledged writes are in the log.',
    'Check the disk. The next start takes over the lock that is left in the folder.',
  ),
  'server.load-left': warn(
    'The server stops while it loads its data again, and leaves its lock in the data folder',
    'The role before the stop had ended with data that were not correct and complete (`data.loading-again`), and to load them takes longer than a stop waits. Acknowledged writes are in the log.',
    'Nothing. The next start loads the data, and takes over the lock.',
  ),
  'server.failed': error(
    'The server stops: its state can no longer be trusted',
    'A write to the disk has failed, or an invariant is broken. The server stops so that it acknowledges nothing it does not have.',
    'Read the field `reason`. Check the disk before the restart, and report a broken invariant.',
  ),
  'server.no-force-sync': warn(
    'forceSync=no: acknowledged writes are lost when the machine loses power. Use it for tests only',
    'The configuration switches the flush of the log off.',
    'Remove `forceSync=no`.',
  ),
  'server.joins-by-proof': info(
    'reconfigEnabled=true: a server that no configuration names may join and read all data once it {proof}',
  ),
  'server.open-ports': warn(
    'The ports for other members are open without authentication: {from} who reaches them can act as a member{join}. Close them to other networks',
    'Members do not prove who they are.',
    'Use TLS (`sslQuorum=true`) or `quorumSecretFile`, or close these ports to other networks.',
  ),
  'server.configuration-older': warn(
    'The members in the configuration file are older than those of a reconfiguration; the newer ones are used',
    'The `server.N` lines of the configuration file do not count, since members were changed while the ensemble ran.',
    'Update the `server.N` lines of the file.',
  ),
  'server.configuration-not-written': warn(
    'A newer configuration cannot be written yet; trying again',
    'The disk is full, so the changed list of members is in memory alone.',
    'Make space in the data folder.',
  ),
  'server.client-port-differs': warn(
    'A change of the ensemble has moved the client port of this server from where the configuration file has it',
    'The client port comes from a reconfiguration, not from `zoo.cfg`.',
    'Update the configuration file, and the addresses that clients use.',
  ),
  'server.client-port-moved': info('The client port has moved, as the configuration says'),
  'server.client-port-not-moved': error(
    'The client port cannot move to where the configuration says',
    'A reconfiguration gives this server another client port, which cannot be bound. The old one stays open.',
    'Free the port, or change the member again.',
  ),

  // Clients, sessions and requests

  'client.connected': info('A session is connected', { isLimited: true, isRoutine: true }),
  'client.closed': info('{reason}', { isLimited: true, isRoutine: true }),
  'client.refused': info('{refusal}', { isLimited: true }),
  'client.not-accepted': info('A client could not be accepted', { isLimited: true }),
  'client.four-letter-word': debug('Answered a four-letter command'),
  'client.memory': warn(
    'Cut the connection that holds most memory, {bytes} bytes: the memory for clients is spent (clientMemory)',
    'A client does not read its replies, or has many requests in flight, and the memory for clients is spent.',
    'Look at that client. Raise `clientMemory`, or lower `globalOutstandingLimit`.',
    { isLimited: true },
  ),
  'client.memory-more': warn(
    'Cut more connections: the memory for clients is spent (clientMemory)',
    'Several clients held too much memory at once.',
    'As for `client.memory`.',
  ),
  'client.login': info('A client has logged in by SASL', { isRoutine: true }),
  'session.expired': info('A session expired', { isLimited: true }),
  'session.passwords-from-ids': warn(
    'The passwords of sessions follow from their ids, which the stats of ephemeral nodes show: a client that reads one can take over the session of its owner. {advice}',
    'The server has no secret for the passwords of sessions.',
    'Follow the message; see `sessionSecretFile` and `quorumSecretFile`.',
  ),
  'session.user-not-stored': warn(
    'The user of a session cannot be stored in {path}: until its client logs in again, another user with its password can resume it',
    'The write that binds a session to its user has failed.',
    'Check the access list and the quota of that path.',
  ),
  'request.slow': warn(
    'A request was slow',
    'A request took longer than `slow.request.ms`, or a read than `slow.request.readMs`; the fields have the milliseconds of each stage.',
    'Look at the longest stage: docs/api.md says what each means.',
    { isLimited: true },
  ),
  'quota.exceeded': warn(
    '{path} goes beyond its {kind} of {limit} {what}',
    'The nodes or bytes under a path are more than its quota.',
    'Remove nodes, or raise the quota. `enforceQuota=true` refuses such writes for hard limits.',
    { isLimited: true },
  ),
  'quota.access-lists': warn(
    'Refused a new access control list: the lists take a quarter of the heap',
    'All members hold all lists that differ in their heaps, each once; `zabra_access_list_bytes` has their memory.',
    'Look who makes nodes with long lists of their own, and remove these. `--max-old-space-size` sets a larger heap.',
    { isLimited: true },
  ),

  'quota.memory': warn(
    'Refused a write that makes the data larger: the memory for data is full',
    'The process takes as much memory as `dataMemory` allows, or nine tenths of its heap. `zabra_memory_limit_bytes{space="data"}` is the limit.',
    'Delete znodes, give all members more memory, or raise `dataMemory`.',
    { isLimited: true },
  ),

  // TLS

  'tls.reloaded': info('{subject} have changed; new connections use them'),
  'tls.unchanged': info('{subject} have not changed'),
  'tls.none': info('There are no certificates to read again'),
  'tls.not-reloaded': error(
    '{subject} have changed and cannot be used; the old ones stay in use',
    'A key or certificate file is damaged, does not fit, or may not be read.',
    'Read the field `reason`, and write the files again before the old certificate ends.',
  ),
  'tls.ends': warn(
    '{subject} end soon',
    'A certificate of this server ends within 14 days; then clients or members refuse it.',
    'Write a new certificate to the same files: it is used within ten seconds.',
  ),
  'tls.members': info('This server connects to other members {how}'),

  'file.open-secret': warn(
    '{path}, {role}, holds secrets: {evidence}. Run {command}',
    'A key, a password or a token can be read, or replaced, by other users of the machine.',
    'Run the command of the line as the owner of the file.',
  ),

  // HTTP, backups, audit

  'admin.tokens-not-read': error(
    'The tokens file was not read again; the old tokens stay',
    'The file that `admin.tokensFile` names is missing or has an invalid line.',
    'Read the field `error`, correct the file, and send SIGHUP again.',
  ),
  'admin.request-failed': warn(
    'An HTTP request has failed',
    'A request to the HTTP port met an unexpected error; the caller got status 500.',
    'Report it with the field `error`.',
  ),
  'admin.report-failed': warn(
    'The report of this server could not be made',
    'Another member has asked for the state of this one, and it met an unexpected error. The answer shows this member with less.',
    'Report it with the field `error`.',
  ),
  'admin.port-not-open': warn(
    'The HTTP port for health, metrics and commands is not open; set admin.serverPort or admin.enableServer=false',
    'Another program uses the port. The server serves clients, without health and metrics.',
    'Set `admin.serverPort` to a free port, or `admin.enableServer=false`.',
  ),
  'backup.made': info('Made a backup with a snapshot'),
  'backup.log-made': debug('Made a backup of the log'),
  'backup.substitute': warn(
    'Took the duty of backups, which backup.member leaves to others, because none of them goes on with the log',
    'None of the members that `backup.member` names was there, or had the log since the last backup. They take the duty back when they can.',
    'See whether those members serve, and reach the target.',
  ),
  'backup.beside-data': warn(
    'Backups go to the file system of the data, and are lost with it',
    'A folder that `backup.target` names is on the same file system as `dataDir` or `dataLogDir`, perhaps because it is not mounted.',
    'Mount a folder of another machine there before the server starts, or name another target.',
  ),
  'backup.gap': warn(
    'Transactions since the last backup are in none: the log of this server does not have them, and no other member has gone on with the log. Set backup.logInterval to a shorter time',
    'A time between two backups cannot be restored. The members that had the log are away, were sent snapshots by their leader, or have removed it (`snapshot.unsaved-purged`).',
    'Set `backup.logInterval` to a shorter time. `zabra backup verify` names the times that cannot be restored.',
  ),
  'backup.no-snapshot': warn(
    'A backup with a snapshot has failed; the log goes on without it',
    'The target or the disk of the data takes no snapshot, as when it is almost full. Each moment can still be restored, by the replay of more log. The server tries again within an hour, and logs nothing more until a snapshot is made; `zabra_backup_problem` is 1 until then.',
    'Read the field `reason`, and make space in the target, or let `backup.retain` keep less.',
  ),
  'backup.failed': error(
    'A backup has failed',
    'The last transactions are in no backup; the server tries again.',
    'Read the field `reason`, and check the target and its credentials.',
  ),
  'backup.last-not-made': error(
    'The last transactions are in no backup',
    'The server stops, and its last transactions could not be written to the target.',
    'Nothing when other members go on. Else start this server again, so that it makes the backup.',
  ),
  'backup.target-unusable': error(
    'The target of backups cannot be used',
    'The target does not answer, or refuses the server.',
    'Read the field `reason`, and check the target and its credentials.',
  ),
  'backup.not-removed': error(
    'Old files of backups cannot be removed',
    'Backups go on; expired ones and small parts of the log stay in the target. The server tries again after ten minutes.',
    'Read the field `reason`, and let the credentials of the server remove files of the target.',
  ),
  'backup.credentials-not-read': error(
    'The credentials for S3 were not read again; the old ones stay in use',
    'The file that `backup.s3.credentialsFile` names is missing, cannot be read or has other contents.',
    'Read the field `reason`, and write the file again; it is read before each request.',
  ),
  'backup.verified': info('Verified the newest backup by replay'),
  'backup.damaged': error(
    'The newest backup cannot be restored',
    'A check by replay has found a file that is missing or damaged.',
    'Make a backup now (`POST /api/v1/backups`), and look at the target.',
  ),
  'backup.verification-not-written': warn(
    'The result of a verification could not be written to the target',
    'This server knows the result. A member that takes the duty of backups verifies again.',
    'Read the field `reason`, and make space in the target.',
  ),
  'backup.not-verified': warn(
    'A backup could not be verified; trying again in an hour',
    'The target did not answer during the check.',
    'Read the field `reason`, and check the target.',
  ),
  'backup.not-verified-memory': warn(
    'The backup was not verified: the memory for a second tree is missing. Run zabra backup verify --deep on another machine, and set backup.verify=0',
    'The check by replay needs as much memory as the data.',
    'Verify on another machine, as the message says.',
  ),
  'audit.event': info('{event}', { isLimited: true, isRoutine: true }),
  'audit.failed-event': error(
    '{event}',
    'A change was refused: this is a line of the audit, which Apache ZooKeeper writes at this level too.',
    'Nothing, unless the change should have been permitted.',
    { isLimited: true, isRoutine: true },
  ),
  'audit.lost': error(
    'Lost audit lines',
    'The audit file could not be written for so long that lines had no room in memory.',
    'Check the disk of `audit.file`. `audit.onFailure=refuse` refuses writes instead.',
  ),
  'audit.failing': error(
    'The audit file cannot be written; its lines wait in memory, up to 4 MiB',
    'The disk of `audit.file` is full or fails.',
    'Make space, or correct the permissions.',
  ),
  'audit.written-again': warn(
    'The audit file can be written again',
    'The disk of `audit.file` works again; `lost` lines are missing.',
    'Nothing.',
  ),
  'audit.head': info('The audit file ends with this line'),
  'audit.not-closed': warn(
    'The audit file could not be closed',
    'The last audit lines may not be on disk.',
    'Check the disk of `audit.file`.',
  ),
} as const satisfies Record<string, LogEvent>
