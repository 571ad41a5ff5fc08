"""Rules: repositories and the services that host them."""

from __future__ import annotations

from outlive.observe.dialects import git_runs, is_a_query, sends_fields
from outlive.observe.rules import READS, Program, has_operands, has_two_operands, program, rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.observe.options import Call
    from outlive.observe.shell import Simple

_BRANCH_CHANGES = (
    "-d -D -m -M -c -C -f -u --delete --move --copy --force --set-upstream-to --unset-upstream --edit-description -t "
    "--track"
)
_BRANCH_READS = (
    "-a -r -l -v --all --remotes --list --show-current --merged --no-merged --contains --no-contains --points-at"
)
_CONFIG_CHANGES = "--unset --unset-all --add --edit -e --replace-all --rename-section --remove-section"
_CONFIG_READS = "--get --get-all --get-regexp --get-urlmatch -l --list --name-only --show-origin --get-color"


def _sets(call: Call, _: Simple) -> bool:
    """Whether a setting is given a value, or an option that changes it."""
    return len(call.operands) > 1 or bool(call.names & {*_CONFIG_CHANGES.split()})


def _shows(call: Call, _: Simple) -> bool:
    """Whether the second word is one that shows, whatever the first is about."""
    verb = "".join(word.text for word in call.operands[1:2])
    return verb.rpartition("-")[2] in {"list", "view", "status", "ls", "show", "verify", "logs", "diff"}


def _hosted(names: str, host: str, settings: str) -> Program:
    """The command line of a service that hosts repositories."""
    tool = names.split(maxsplit=1)[0]
    return program(
        names,
        rule(
            "pr_view pr_list pr_diff pr_status pr_checks issue_view issue_list issue_status run_view run_list "
            "run_watch repo_view repo_list release_view release_list workflow_view workflow_list auth_status "
            "auth_token label_list gist_view gist_list secret_list variable_list search status browse config_get "
            "cache_list ruleset_list mr_view mr_list mr_diff ci_view ci_list ci_status ci_trace extension_list "
            "alias_list help version org_list",
            "",
            f"{tool} pr view 1 =>",
            f"{tool} run list =>",
        ),
        rule("", "", f"{tool} project item-list 1 =>", f"{tool} ssh-key list =>", asks=_shows),
        rule("api_graphql", "", f"{tool} api graphql -f query='query {{ viewer {{ login }} }}' =>", asks=is_a_query),
        rule(
            "api",
            f"remote:={host}",
            f"{tool} api -X POST a => remote:{host}",
            f"{tool} api a -f b=c => remote:{host}",
            f"{tool} api graphql -f query='mutation {{ a }}' => remote:{host}",
            asks=sends_fields,
        ),
        rule("api", "", f"{tool} api repos/a/b =>"),
        rule("pr_checkout mr_checkout", "git:here", f"{tool} pr checkout 1 => git:/w"),
        rule(
            "repo_clone run_download release_download gist_clone",
            "path:-D,--dir|here",
            f"{tool} run download 1 => path:/w",
        ),
        rule("auth config extension alias", f"path:={settings}", f"{tool} auth login => path:{settings}"),
        rule(
            "",
            f"remote:={host}",
            f"{tool} pr create -t x => remote:{host}",
            f"{tool} release create v1 => remote:{host}",
            asks=has_operands,
        ),
        otherwise=READS,
        takes=(
            "-R -X -f -F -H -t -b -B -q -D -L --repo --method --field --raw-field --header --title --body --base "
            "--json --jq --dir"
        ),
    )


VERSIONS = (
    program(
        "git",
        rule(
            "",
            "unknown:tool",
            "git -c core.pager='touch x' log => unknown:git",
            "git -c pager.log='tee x' log => unknown:git",
            "git -c diff.external=./x diff => unknown:git",
            "GIT_EXTERNAL_DIFF=./x.sh git diff => unknown:git",
            "GIT_PAGER='tee log.txt' git log => unknown:git",
            "PAGER='sh -c \"cat > a\"' git log => unknown:git",
            "export GIT_PAGER=$X; git log => unknown:git",
            "env GIT_PAGER='less; rm x' git log => unknown:git",
            "git ls-remote 'ext::sh -c touch% x' => unknown:git",
            "git ls-remote --upload-pack='touch x' a => unknown:git",
            "GIT_PAGER=cat git log =>",
            "PAGER= git -c core.pager='less -R' log =>",
            "git -c user.name=x -c core.hooksPath=/dev/null commit -m x => git:/w",
            "GIT_SSH_COMMAND='ssh -i k' git fetch => git:/w",
            "git switch -c editor => git:/w",
            asks=git_runs,
            also=True,
        ),
        rule("stash_list stash_show", "", "git stash list =>", "git stash show -p =>"),
        rule("stash", "git:here", "git stash => git:/w", "git stash pop => git:/w"),
        rule(
            "add rm mv clean push",
            "",
            "git add -n . =>",
            "git push --dry-run =>",
            "git clean -nd =>",
            when="-n --dry-run",
        ),
        rule("worktree_prune", "", "git worktree prune -n =>", when="-n --dry-run"),
        rule("interpret-trailers", "path:each", "git interpret-trailers --in-place a => path:/w/a", when="--in-place"),
        rule("commit fetch", "", "git commit --dry-run =>", "git commit -n -m x => git:/w", when="--dry-run"),
        rule(
            "push",
            "git:here remote:first",
            "git push -u origin x => git:/w remote:origin",
            "git push => git:/w remote:git",
        ),
        rule(
            "worktree_list submodule_status notes_show notes_list bisect_log bisect_view bisect_visualize "
            "sparse-checkout_list lfs_ls-files lfs_status lfs_env remote_show remote_get-url config_get config_list "
            "bundle_verify bundle_list-heads reflog_show submodule_summary rerere_status stash_create",
            "",
            "git worktree list =>",
            "git remote get-url origin =>",
        ),
        rule("worktree_add", "git:here path:first", "git worktree add ../x => git:/w path:/x"),
        rule(
            "worktree submodule notes bisect sparse-checkout lfs rerere maintenance",
            "git:here",
            "git worktree prune => git:/w",
            "git submodule update --init => git:/w",
            asks=has_operands,
        ),
        rule("submodule notes worktree lfs sparse-checkout", "", "git submodule =>"),
        rule("reflog_expire reflog_delete", "git:here", "git reflog expire --all => git:/w"),
        rule(
            "remote_add remote_remove remote_rm remote_rename remote_set-url remote_prune remote_update "
            "remote_set-head remote_set-branches",
            "git:here",
            "git remote add up url => git:/w",
        ),
        rule("branch", "git:here", "git branch -D x => git:/w", when=_BRANCH_CHANGES),
        rule("branch", "", "git branch -a =>", "git branch --merged main =>", when=_BRANCH_READS),
        rule("branch", "git:here", "git branch x => git:/w", asks=has_operands),
        rule(
            "tag",
            "",
            "git tag =>",
            "git tag -l 'v*' =>",
            when="-l --list -n --contains --points-at --merged --no-merged -v",
        ),
        rule("tag", "git:here", "git tag v1 => git:/w", "git tag -d v1 => git:/w", asks=has_operands),
        rule("config", "", "git config -l =>", "git config --get a.b =>", when=_CONFIG_READS),
        rule(
            "config",
            "path:=~/.gitconfig",
            "git config --global a.b c => path:~/.gitconfig",
            "git config --global --unset a.b => path:~/.gitconfig",
            "git config --global a.b =>",
            when="--global --system",
            asks=_sets,
        ),
        rule("config", "git:here", "git config a.b c => git:/w", "git config a.b =>", asks=has_two_operands),
        rule(
            "config",
            "git:here",
            "git config --unset a.b => git:/w",
            when=_CONFIG_CHANGES,
        ),
        rule("apply", "", "git apply --check a.diff =>", when="--check --stat --numstat --summary"),
        rule("hash-object", "git:here", "git hash-object -w a => git:/w", when="-w"),
        rule("symbolic-ref", "git:here", "git symbolic-ref HEAD refs/heads/x => git:/w", asks=has_two_operands),
        rule(
            "format-patch",
            "path:-o,--output-directory|here",
            "git format-patch -1 => path:/w",
            "git format-patch --stdout -1 =>",
            unless="--stdout",
        ),
        rule(
            "archive",
            "path:-o,--output",
            "git archive -o a.tar HEAD => path:/w/a.tar",
            "git archive HEAD | tar -tf - =>",
            when="-o --output",
        ),
        rule("bundle_create", "path:first", "git bundle create a HEAD => path:/w/a"),
        rule(
            "diff log show shortlog whatchanged diff-tree diff-files diff-index",
            "path:--output",
            "git diff --output=a => path:/w/a",
            "git shortlog --output=a => path:/w/a",
            when="--output",
        ),
        rule(
            "clone",
            "path:rest|here",
            "git clone url => path:/w",
            "git clone url lib => path:/w/lib",
            "git clone --filter blob:none -j 8 url lib => path:/w/lib",
            "git clone url /tmp/a =>",
        ),
        rule("init", "git:file|here", "git init => git:/w", "git init lib => git:/w/lib"),
        rule(
            "add commit merge rebase reset restore revert checkout switch cherry-pick pull fetch rm mv clean am "
            "apply gc prune repack update-index update-ref filter-branch filter-repo read-tree write-tree "
            "commit-tree fast-import replace checkout-index pack-refs mergetool send-pack subtree unpack-objects svn",
            "git:here",
            "git add -A => git:/w",
            "git -C ../lib commit -m x => git:/lib",
            "git rebase -i main => git:/w",
            "git commit --help =>",
            "git stash -h =>",
            "git commit -m --help => git:/w",
        ),
        rule(
            "status diff log show blame annotate shortlog describe rev-parse rev-list ls-files ls-tree ls-remote "
            "cat-file merge-base name-rev grep whatchanged show-ref show-branch for-each-ref reflog remote branch "
            "tag config diff-tree diff-files diff-index check-ignore check-attr count-objects fsck var version help "
            "hash-object verify-commit verify-tag range-diff symbolic-ref cherry instaweb archive format-patch "
            "check-ref-format merge-tree patch-id interpret-trailers column get-tar-commit-id gitk",
            "",
            "git status =>",
            "git log -p =>",
            "git -C ../lib log -1 =>",
        ),
        takes="-c --git-dir --work-tree --namespace -m -F -S -b -B -o --output --message --file --format --author "
        "--date -X --onto --strategy --exec --depth --branch --config --grep --since --until --filter "
        "--jobs -j --reference --origin --shallow-since",
        directory="-C",
        leads=True,
    ),
    program(
        "hg svn jj bzr",
        rule(
            "status st diff log info cat annotate blame summary heads branches tags list ls show", "", "svn status =>"
        ),
        rule("push", "remote:first|tool git:here", "hg push => remote:hg git:/w"),
        rule("", "git:here", "hg commit -m x => git:/w", asks=has_operands),
        takes="-m -r",
    ),
    _hosted("gh hub", "github", "~/.config/gh"),
    _hosted("glab", "gitlab", "~/.config/glab-cli"),
)
