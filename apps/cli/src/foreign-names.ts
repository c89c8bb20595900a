import { commandGroups } from './commands/index.ts'

/** What `zabra` has for the commands of zkCli.sh, etcdctl, kubectl and file systems, by their names in lower case. */
const commands: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'put write update': 'zabra set PATH DATA, or zabra create for a new node',
    'mkdir touch add new': 'zabra create PATH',
    'del remove unlink': 'zabra delete PATH, or zabra delete-all for a node and all below it',
    'rmr rmdir': 'zabra delete-all PATH',
    'cat read show': 'zabra get PATH',
    'list dir ll children getallchildrennumber': 'zabra ls PATH, zabra ls -s PATH or zabra tree PATH',
    ls2: 'zabra ls -s PATH',
    'exists describe info': 'zabra stat PATH',
    'cp copy': 'zabra export FROM | zabra import - TO',
    'mv move rename':
      'zabra export FROM | zabra import - TO, then zabra delete-all FROM: nodes cannot be renamed',
    'cd pwd': 'whole paths in each command, or a root behind the servers: --server host:port/root',
    'connect use login': '--server host:port in each command, ZABRA_SERVER, or zabra context add NAME',
    'auth addauth user role': '--auth digest:user:password, or ZABRA_AUTH; zabra set-acl gives permissions',
    setquota: 'zabra quota set PATH',
    listquota: 'zabra quota list PATH',
    delquota: 'zabra quota del PATH',
    'addwatch removewatches printwatches subscribe': 'zabra watch PATH',
    getephemerals: 'zabra ephemerals PATH',
    'reconfig members join': 'zabra member and zabra cluster; zabra shell has reconfig',
    'srvr mntr ruok conf cons dump health endpoint ping': 'zabra status, or zabra doctor',
    'server serve start stop run': 'the program zabra-server, which is the server',
    'quit exit history redo close clear repl console cli': 'zabra shell, which has this command',
    version: 'zabra --version',
    apply: 'zabra import FILE for nodes, zabra txn for a transaction',
    'save archive': 'zabra backup now, or zabra export PATH',
    load: 'zabra import FILE',
    'compact compaction defrag': 'zabra purge FOLDER, which removes old snapshots and logs',
    'alarm alarms': 'zabra status',
    logs: 'zabra log FOLDER',
    sessions: 'zabra session list',
    'users passwd password': 'zabra digest USER',
  }).flatMap(([names, text]) => names.split(' ').map((name) => [name, text] as const)),
)

/** What `zabra` has for options of such programs. */
const options: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '-o --output --format -w --write-out': '--json prints JSON',
    '-s -server -erver --host --hosts --endpoint --endpoints --zookeeper --zk -z':
      '--server host:port names the servers',
    '-u --user --username -p --password': '--auth digest:user:password or --sasl-user gives an identity',
    '--cacert --cafile': '--ca names the trusted authorities',
    '-r -rf -fr --recursive': 'a node and all below it: zabra delete-all; listing: zabra ls -R',
    '-l --long': '-s prints the stat too',
    '-v --verbose': 'zabra --version prints the version, zabra status the state of servers',
    '--namespace -n':
      'a root behind the servers, as in --server host:port/root, is what a namespace would be',
    '-name --name': 'zabra find --glob matches names',
    '-y --yes -f --force': 'no command asks, so none needs a confirmation',
    '--watch': 'zabra watch PATH waits for changes',
    '-V --version': 'zabra --version prints the version of the program, zabra stat that of a node',
  }).flatMap(([names, text]) => names.split(' ').map((name) => [name, text] as const)),
)

/**
 * Returns the message about a wrong command line with what to use in place of an unknown command or option, where another program has it
 * under that name.
 */
export function adviseForeignName(message: string, argv: readonly string[]): string {
  // Data with blanks, or the version that zkCli.sh takes there.
  if (/too many arguments for '(?:set|create)'/.test(message))
    return message.replace(/\.$/m, '. Put data with blanks into quotes; --version gives a version.')
  const names = commandGroups.flatMap(([, entries]) => entries.flatMap(({ names }) => names))

  const [, kind, name] = /unknown (command|option) '([^']*)'/.exec(message) ?? []
  if (kind === undefined || name === undefined) return message
  const advice =
    kind === 'command'
      ? adviceAbout(name, names, argv)
      : options.get(name.startsWith('--') ? name.replace(/=.*/, '') : name)
  if (advice === undefined) return message
  const [head] = message.split('\n')
  return kind === 'command' ? `${head}. Use ${advice}.` : `${head}. In zabra, ${advice}.`
}

function adviceAbout(name: string, names: readonly string[], argv: readonly string[]): string | undefined {
  // The unknown command is one below another, such as that of `zabra cluster list`.
  if (argv.slice(0, argv.indexOf(name)).some((word) => names.includes(word))) return undefined
  const lower = name.toLowerCase()
  return names.includes(lower) ? `zabra ${lower}` : commands.get(lower)
}
