/* SPDX-License-Identifier: MIT */
/*
 * Mistakes to order: "insmod faults.ko kind=NAME" makes one, and the kernel must say so. Loading
 * fails in any case, so that the next can be made.
 */
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

static char *kind = "";
module_param(kind, charp, 0);

static DEFINE_MUTEX(lock_a);
static DEFINE_MUTEX(lock_b);
static DEFINE_SPINLOCK(lock_irq);
static int shared;

struct locked {
	struct mutex lock;
};

static void use_after_free(void)
{
	char *p = kmalloc(64, GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(p);
	kfree(p);
	WRITE_ONCE(p[8], 1);
}

static void beyond_the_end(void)
{
	char *p = kmalloc(60, GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(p);
	WRITE_ONCE(p[60], 1);
	kfree(p);
}

static void beyond_vmalloc(void)
{
	char *p = vmalloc(PAGE_SIZE - 16);

	OPTIMIZER_HIDE_VAR(p);
	(void)READ_ONCE(p[PAGE_SIZE - 16]);
	vfree(p);
}

static void freed_twice(void)
{
	char *p = kmalloc(64, GFP_KERNEL);

	kfree(p);
	OPTIMIZER_HIDE_VAR(p);
	kfree(p);
}

static void wide_shift(void)
{
	int by = 40;

	OPTIMIZER_HIDE_VAR(by);
	WRITE_ONCE(shared, 1 << by);
}

/* Of two locks of one class, so that it does not wait for ever. */
static void recursive_locking(void)
{
	struct locked two[2];
	int i;

	for (i = 0; i < 2; i++)
		mutex_init(&two[i].lock);
	mutex_lock(&two[0].lock);
	mutex_lock(&two[1].lock);
	mutex_unlock(&two[1].lock);
	mutex_unlock(&two[0].lock);
}

static void circular_locking(void)
{
	mutex_lock(&lock_a);
	mutex_lock(&lock_b);
	mutex_unlock(&lock_b);
	mutex_unlock(&lock_a);
	mutex_lock(&lock_b);
	mutex_lock(&lock_a);
	mutex_unlock(&lock_a);
	mutex_unlock(&lock_b);
}

static void in_rcu_callback(struct rcu_head *head)
{
	spin_lock(&lock_irq);
	spin_unlock(&lock_irq);
	kfree(head);
}

/* RCU callbacks run in a softirq; what those take must be taken with softirqs off. */
static void inconsistent_state(void)
{
	struct rcu_head *head = kmalloc(sizeof(*head), GFP_KERNEL);

	if (!head)
		return;
	call_rcu(head, in_rcu_callback);
	rcu_barrier();
	spin_lock(&lock_irq);
	spin_unlock(&lock_irq);
}

static void suspicious_rcu(void)
{
	static int __rcu *pointer;

	(void)rcu_dereference(pointer);
}

static void bad_unlock(void)
{
	mutex_unlock(&lock_a);
}

static void held_lock_freed(void)
{
	struct locked *l = kmalloc(sizeof(*l), GFP_KERNEL);

	mutex_init(&l->lock);
	mutex_lock(&l->lock);
	kfree(l);
}

static void sleep_in_atomic(void)
{
	spin_lock(&lock_irq);
	might_sleep();
	spin_unlock(&lock_irq);
}

static void refcount_below_zero(void)
{
	refcount_t count = REFCOUNT_INIT(0);

	refcount_dec(&count);
}

static void list_corruption(void)
{
	LIST_HEAD(head);
	LIST_HEAD(one);

	list_add(&one, &head);
	head.next = &head;
	list_del(&one);
}

static void warns(void)
{
	WARN(1, "as asked\n");
}

static const struct {
	const char *name;
	void (*make)(void);
} kinds[] = {
	{ "use-after-free", use_after_free },
	{ "beyond-the-end", beyond_the_end },
	{ "beyond-vmalloc", beyond_vmalloc },
	{ "freed-twice", freed_twice },
	{ "wide-shift", wide_shift },
	{ "recursive-locking", recursive_locking },
	{ "circular-locking", circular_locking },
	{ "inconsistent-state", inconsistent_state },
	{ "suspicious-rcu", suspicious_rcu },
	{ "bad-unlock", bad_unlock },
	{ "held-lock-freed", held_lock_freed },
	{ "sleep-in-atomic", sleep_in_atomic },
	{ "refcount-below-zero", refcount_below_zero },
	{ "list-corruption", list_corruption },
	{ "warning", warns },
};

static int __init faults_init(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].name, kind))
			continue;
		kinds[i].make();
		return -ECANCELED;
	}
	return -EINVAL;
}
module_init(faults_init);

MODULE_DESCRIPTION("Mistakes that a kernel must report");
MODULE_LICENSE("Dual MIT/GPL");
